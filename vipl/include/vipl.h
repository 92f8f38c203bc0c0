/*
 * Viaduct: the Virtual Interface Provider Library (VIPL) API.
 *
 * This header serves every dialect of VIPL. A descriptor has the members of Intel's guide and M-VIA
 * (CS, DS[2]) and those of cLAN (Control, Data[1]), which name the same bytes. So VIPL095, which
 * chose between them, may be defined or not. The header is valid C89 (with a 64-bit integer and
 * anonymous unions) and valid C++ up to C++23, and includes nothing.
 *
 * A function that returns VIP_RETURN returns VIP_SUCCESS or one of the codes listed with it,
 * without their prefix VIP_. It may also return VIP_INVALID_PARAMETER for a bad handle, pointer or
 * value, and VIP_ERROR_RESOURCE if memory or another resource has run out. A pointer must not be
 * NULL unless the comment allows that or its meaning is the program's own (Context, UserData). Any
 * thread may call any function.
 *
 * Time-outs are in milliseconds. VIP_INFINITE, and 0xFFFFFFFF too, means no limit; with 0 a
 * function that waits only looks once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_VIPL_H_
#define VIADUCT_VIPL_H_

/* Programs test for the guards of Intel's and of cLAN's header. */
#ifndef _VIPL_
#define _VIPL_
#endif
#ifndef _VIPL_H
#define _VIPL_H
#endif

#define VIADUCT_VERSION "0.1.0"

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

#if defined(__GNUC__)
#define VIADUCT_VIPL_EXTENSION __extension__
#else
#define VIADUCT_VIPL_EXTENSION
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Scalars ---- */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef short VIP_SHORT;
typedef unsigned short VIP_USHORT;
typedef long VIP_LONG;
typedef unsigned long VIP_ULONG; /* 64 bits on a 64-bit machine */

typedef unsigned char VIP_UINT8;
typedef unsigned short VIP_UINT16;
typedef unsigned int VIP_UINT32;
/* g++ ignores __extension__ before a typedef. */
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wlong-long"
#endif
VIADUCT_VIPL_EXTENSION typedef unsigned long long VIP_UINT64;
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

#define VIP_TRUE 1
#define VIP_FALSE 0

#ifndef VIP_KERNEL
#define VIP_INFINITE ((VIP_ULONG)-1)
#endif

/* ---- Handles: opaque; every call checks them ---- */

/* The specification leaves the contents open: pass 0. The pointer itself is compared with the
 * peer's and must fit 32 bits. */
typedef VIP_PVOID VIP_QOS;
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE; /* NULL: the default tag, which passes every check */
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_EVENT_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE; /* 1 to 0x7FFFFFFF; a program may tell it to a peer */

/* ---- Return codes ---- */

typedef enum {
  VIP_SUCCESS = 0,
  VIP_NOT_DONE = 1,                  /* what the call asks for is not complete yet */
  VIP_INVALID_PARAMETER = 2,         /* a handle, pointer or value is bad */
  VIP_ERROR_RESOURCE = 3,            /* resources have run out, or the object is still in use */
  VIP_TIMEOUT = 4,                   /* the time has passed, or the requester has gone */
  VIP_REJECT = 5,                    /* the remote side called VipConnectReject */
  VIP_INVALID_RELIABILITY_LEVEL = 6, /* the level is not supported, or not the remote VI's */
  VIP_INVALID_MTU = 7,               /* MaxTransferSize is not supported, or not the remote VI's */
  VIP_INVALID_QOS = 8,               /* QoS has more than 32 bits, or is not the remote VI's */
  VIP_INVALID_PTAG = 9,              /* not a protection tag of this NIC */
  VIP_INVALID_RDMAREAD = 10,         /* EnableRdmaRead is set where RDMA read is not supported */
  VIP_DESCRIPTOR_ERROR = 11, /* the descriptor failed or, if it is NULL, the queue is empty */
  VIP_INVALID_STATE = 12, /* the VI's state forbids the call, or VipDisconnect ended the attempt */
  VIP_ERROR_NAMESERVICE = 13,   /* the name service is not running, or finds nothing */
  VIP_NO_MATCH = 14,            /* nobody waits for this discriminator */
  VIP_NOT_REACHABLE = 15,       /* the network says that the remote host cannot be reached */
  VIP_ERROR_NOT_SUPPORTED = 16, /* an optional function that this library lacks */
  VIP_INVALID_ADDRESS = 18      /* the host part of LocalAddr is not this NIC's address */
} VIP_RETURN;

/* ---- Reliability levels: a bit set in VIP_NIC_ATTRIBUTES, one bit in VIP_VI_ATTRIBUTES ---- */

typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE 0x1
#define VIP_SERVICE_RELIABLE_DELIVERY 0x2
#define VIP_SERVICE_RELIABLE_RECEPTION 0x4

/* Additions of cLAN: the bits of all levels, and two levels that VipCreateVi refuses. */
#ifndef VIP_BASE_SERVICES
#define VIP_BASE_SERVICES 0x7
#endif
#ifndef VIP_SERVICE_ACK
#define VIP_SERVICE_ACK (1 << 14)
#endif
#ifndef VIP_SERVICE_DFC
#define VIP_SERVICE_DFC (1 << 15)
#endif

/* ---- States, resources and asynchronous errors ---- */

typedef enum {
  VIP_STATE_IDLE = 0,
  VIP_STATE_CONNECTED = 1,
  VIP_STATE_CONNECT_PENDING = 2,
  VIP_STATE_ERROR = 3 /* only VipDisconnect leads out of it */
} VIP_VI_STATE;

typedef enum _VIP_RESOURCE_CODE {
  VIP_RESOURCE_NIC = 0,
  VIP_RESOURCE_VI = 1,
  VIP_RESOURCE_CQ = 2,
  VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

typedef enum _VIP_ERROR_CODE {
  VIP_ERROR_POST_DESC = 0,   /* a posted descriptor's address, alignment, handle or tag is wrong */
  VIP_ERROR_CONN_LOST = 1,   /* the connection has ended; the VI is in VIP_STATE_ERROR */
  VIP_ERROR_RECVQ_EMPTY = 2, /* a message met no posted receive and was dropped (unreliable) */
  VIP_ERROR_VI_OVERRUN = 3,  /* more was posted than the queue can hold or memory allows */
  VIP_ERROR_RDMAW_PROT = 4,  /* a peer's RDMA write without immediate data was refused */
  VIP_ERROR_RDMAW_DATA = 5,  /* the next part of such a write arrived corrupt */
  VIP_ERROR_RDMAW_ABORT = 6, /* the connection ended when a part of such a write was in memory */
  VIP_ERROR_RDMAR_PROT = 7,  /* a peer's RDMA read was refused */
  VIP_ERROR_COMP_PROT = 8,   /* a descriptor completed whose memory was not registered any more */
  VIP_ERROR_RDMA_TRANSPORT = 9, /* something arrived so corrupt that nobody knows what it was */
  VIP_ERROR_CATASTROPHIC = 10   /* the NIC's RDMA device has failed: the NIC can only be closed */
} VIP_ERROR_CODE;

/* ---- Addresses ---- */

/*
 * HostAddress holds HostAddressLen bytes of host address, which are an IPv4 address in network byte
 * order and two zeros, and then DiscriminatorLen bytes of discriminator, which may have any values
 * and no terminator. A variable of this type is too small for both: allocate
 * sizeof(VIP_NET_ADDRESS) + NicAddressLen + MaxDiscriminatorLen bytes.
 */
typedef struct _VIP_NET_ADDRESS {
  VIP_UINT16 HostAddressLen;   /* NicAddressLen of the NIC: 6 */
  VIP_UINT16 DiscriminatorLen; /* 0 to MaxDiscriminatorLen */
  VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* ---- Attributes ---- */

typedef struct _VIP_NIC_ATTRIBUTES {
  VIP_CHAR Name[64]; /* the name that VipOpenNic was given, cut off if it is longer */
  VIP_ULONG HardwareVersion;
  VIP_ULONG ProviderVersion;
  VIP_UINT16 NicAddressLen;
  const VIP_UINT8 *LocalNicAddress; /* the library's memory, valid until VipCloseNic */
  VIP_BOOLEAN ThreadSafe;
  VIP_UINT16 MaxDiscriminatorLen;
  VIP_ULONG MaxRegisterBytes;
  VIP_ULONG MaxRegisterRegions;
  VIP_ULONG MaxRegisterBlockBytes;
  VIP_ULONG MaxVI;
  VIP_ULONG MaxDescriptorsPerQueue;
  VIP_ULONG MaxSegmentsPerDesc; /* an RDMA's address segment included */
  VIP_ULONG MaxCQ;
  VIP_ULONG MaxCQEntries;
  VIP_ULONG MaxTransferSize; /* bytes */
  VIP_ULONG NativeMTU;       /* bytes */
  VIP_ULONG MaxPtags;
  VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* the levels that a VI may have */
  VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* the levels that have RDMA read */
} VIP_NIC_ATTRIBUTES;

/* ReliabilityLevel, MaxTransferSize and QoS must be equal at both ends of a connection. */
typedef struct _VIP_VI_ATTRIBUTES {
  VIP_RELIABILITY_LEVEL ReliabilityLevel; /* exactly one bit */
  VIP_ULONG MaxTransferSize;              /* bytes: 1 to that of the NIC */
  VIP_QOS QoS;
  VIP_PROTECTION_HANDLE Ptag;
  VIP_BOOLEAN EnableRdmaWrite; /* the peer may write by RDMA */
  VIP_BOOLEAN EnableRdmaRead;  /* the peer may read by RDMA */
} VIP_VI_ATTRIBUTES;

/* A VI may use a region if the protection tags of both are equal or one of them is NULL. */
typedef struct _VIP_MEM_ATTRIBUTES {
  VIP_PROTECTION_HANDLE Ptag;
  VIP_BOOLEAN EnableRdmaWrite; /* peers may write the region by RDMA */
  VIP_BOOLEAN EnableRdmaRead;  /* peers may read the region by RDMA */
} VIP_MEM_ATTRIBUTES;

/* ---- Descriptors: a layout of fixed size and offsets on every machine ---- */

#define VIP_DESCRIPTOR_ALIGNMENT 64 /* bytes, for every descriptor that is posted */

/* A pointer that takes 64 bits on every machine. */
typedef union {
  VIP_UINT64 AddressBits;
  VIP_PVOID Address;
  struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

typedef struct {
  VIP_PVOID64 Next;          /* the library's from post to completion, else the program's */
  VIP_MEM_HANDLE NextHandle; /* like Next */
  VIP_UINT16 SegCount;       /* segments that follow, an RDMA's address segment included */
  VIP_UINT16 Control;        /* VIP_CONTROL_* */
  VIP_UINT32 Reserved;
  VIP_UINT32 ImmediateData;   /* see VIP_CONTROL_IMMEDIATE and VIP_STATUS_IMMEDIATE */
  VIP_UINT32 Length;          /* bytes in all data segments; after a receive: bytes received */
  volatile VIP_UINT32 Status; /* VIP_STATUS_*; written last, so a program may poll it */
} VIP_CONTROL_SEGMENT;

/* Where an RDMA writes or reads: an address in the peer's memory and the peer's memory handle. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle;
  VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* A piece of local memory, within the region of its handle. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle;
  VIP_UINT32 Length; /* bytes */
} VIP_DATA_SEGMENT;

typedef union {
  VIP_ADDRESS_SEGMENT Remote;
  VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/* CS and Control name the same bytes, and so do DS and Data. Segments beyond the second follow
 * DS[1] in memory. */
VIADUCT_VIPL_EXTENSION typedef struct _VIP_DESCRIPTOR {
  VIADUCT_VIPL_EXTENSION union {
    VIP_CONTROL_SEGMENT CS;
    VIP_CONTROL_SEGMENT Control;
  };
  VIADUCT_VIPL_EXTENSION union {
    VIP_DESCRIPTOR_SEGMENT DS[2];
    VIP_DATA_SEGMENT Data[2];
  };
} VIP_DESCRIPTOR;

/* VIP_CONTROL_SEGMENT.Control: one operation, and two flags that may be added. */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004 /* ImmediateData is sent, too; not with an RDMA read */
#define VIP_CONTROL_QFENCE 0x0008    /* begin only when the RDMA reads posted before are complete */
#define VIP_CONTROL_RESERVED 0xFFF0  /* must be 0 */

/* VIP_CONTROL_SEGMENT.Status: 0 until the descriptor completes; then VIP_STATUS_DONE, an operation,
 * and perhaps an error or VIP_STATUS_IMMEDIATE. */
#define VIP_STATUS_DONE 0x00000001               /* complete, with success or not */
#define VIP_STATUS_FORMAT_ERROR 0x00000002       /* the descriptor is malformed */
#define VIP_STATUS_PROTECTION_ERROR 0x00000004   /* a segment's handle, tag or range is wrong */
#define VIP_STATUS_LENGTH_ERROR 0x00000008       /* Length is wrong, or the message is too long */
#define VIP_STATUS_PARTIAL_ERROR 0x00000010      /* the library never sets it */
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020 /* not processed: the VI is not connected */
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040    /* the connection was lost in the middle of it */
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080    /* the memory does not allow the RDMA */
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100  /* the peer's receive failed */
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000 /* a receive that the peer's RDMA write took */
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000 /* ImmediateData was received */
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* ---- Callbacks: called in turn on one thread of the library; may call any function ---- */

/* Belongs to the library and is valid until the handler returns. */
typedef struct _VIP_ERROR_DESCRIPTOR {
  VIP_NIC_HANDLE NicHandle;
  VIP_VI_HANDLE ViHandle;
  VIP_CQ_HANDLE CQHandle;
  VIP_DESCRIPTOR *DescriptorPtr;
  VIP_ULONG OpCode;               /* always 0 */
  VIP_RESOURCE_CODE ResourceCode; /* which NIC, VI, CQ or descriptor above the error concerns */
  VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);
/* Descriptor has been taken from its queue. */
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR *Descriptor);
/* The handler takes the descriptor: with VipRecvDone if RecvQueue is VIP_TRUE, else VipSendDone. */
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* ---- System management ---- */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct {
  VIP_ULONG NumberOfHops;        /* in: has no effect */
  VIP_NET_ADDRESS **ADAddrArray; /* the caller's array, or NULL; receives pointers to addresses
                                  * that the library owns, valid until VipCloseNic */
  VIP_ULONG NumAdAddrs; /* in: pointers that the array has room for; out: pointers that were set or,
                         * without an array, addresses that there are */
} VIP_AUTODISCOVERY_LIST;

/* An InfoType that only this library has. Both strings have a terminator and are cut off to fit. */
#define VIADUCT_SMI_DEVICE ((VIP_ULONG)0x56440001)

typedef struct {
  VIP_CHAR Device[32];  /* the device that serves the NIC */
  VIP_CHAR Reason[224]; /* why this device was chosen */
} VIADUCT_DEVICE_INFO;

/* ==== NIC ==== */

/* Opens the NIC that DeviceName means on this host (vipl(7) lists the names), with a handle of its
 * own for each call. Codes: INVALID_PARAMETER (there is no such NIC), ERROR_RESOURCE. */
extern VIP_RETURN VipOpenNic(IN const VIP_CHAR *DeviceName, OUT VIP_NIC_HANDLE *NicHandle);

/* Closes the NIC and releases everything that was made with it: connections end, memory is
 * deregistered, and calls that wait in other threads return VIP_INVALID_PARAMETER. */
extern VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);

/* Reports the NIC's attributes, none of which changes while the NIC is open. */
extern VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES *NicAttribs);

/* ==== VI ==== */

/* Creates an Idle VI. Both work queues may have the same completion queue; NULL leaves a work queue
 * without one. Codes: ERROR_RESOURCE, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS,
 * INVALID_PTAG, INVALID_RDMAREAD. */
extern VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES *ViAttribs,
                              IN VIP_CQ_HANDLE SendCQHandle, IN VIP_CQ_HANDLE RecvCQHandle,
                              OUT VIP_VI_HANDLE *ViHandle);

/* Destroys an Idle VI whose queues are empty, and ends the waits of other threads on it. Codes:
 * INVALID_STATE (the VI is not Idle, or another thread is connecting it), ERROR_RESOURCE
 * (descriptors are still on a queue). */
extern VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);

/* Changes the attributes of an Idle VI. Codes: INVALID_STATE (the VI is not Idle),
 * INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, INVALID_PTAG, INVALID_RDMAREAD. */
extern VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES *ViAttribs);

/* Reports the state, the attributes, and whether the queues are empty, in every state. */
extern VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE *State,
                             OUT VIP_VI_ATTRIBUTES *ViAttribs, OUT VIP_BOOLEAN *SendQEmpty,
                             OUT VIP_BOOLEAN *RecvQEmpty);

/* ==== Connections, client and server ==== */

/* Waits until a request for LocalAddr arrives; the host part of LocalAddr must be this NIC's
 * address. RemoteAddr receives the requester's host address and discriminator and needs room for
 * both (VIP_NET_ADDRESS); RemoteViAttribs receives the attributes of the requester's VI. ConnHandle
 * is for VipConnectAccept or VipConnectReject. Codes: TIMEOUT, INVALID_ADDRESS, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                 IN VIP_ULONG Timeout, OUT VIP_NET_ADDRESS *RemoteAddr,
                                 OUT VIP_VI_ATTRIBUTES *RemoteViAttribs,
                                 OUT VIP_CONN_HANDLE *ConnHandle);

/* Connects an Idle VI to the requester. Success ends the handle; after any other result the handle
 * is valid until VipConnectReject. Codes: INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (the
 * attribute is not the requester's, who is not told and still waits), INVALID_STATE (the VI is not
 * Idle, and the requester still waits; or VipDisconnect has ended the attempt and the request),
 * TIMEOUT (the requester has gone), ERROR_RESOURCE. */
extern VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);

/* Rejects the request: the requester gets VIP_REJECT. Success ends the handle. Code:
 * ERROR_RESOURCE (the request is still pending). */
extern VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);

/* Connects an Idle VI to a program that waits for RemoteAddr. The host part of LocalAddr must be
 * this NIC's address; the discriminator of LocalAddr only tells the other side who asks. TimeOut 0
 * is invalid. RemoteViAttribs receives the other VI's attributes. Codes: TIMEOUT, REJECT, NO_MATCH
 * (after these three the VI is Idle), NOT_REACHABLE (a VI of a reliable level is in
 * VIP_STATE_ERROR), INVALID_STATE (the VI is not Idle, or VipDisconnect ended the attempt),
 * INVALID_ADDRESS, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                    IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG TimeOut,
                                    OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Ends a connection or an attempt to connect, in any state of the VI, which is then Idle.
 * Everything that was posted completes as flushed, and the program must take it from the queues.
 * The peer's VI goes to VIP_STATE_ERROR. */
extern VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* ==== Connections, peer to peer ==== */

/* Starts to connect an Idle VI to a VI whose request has the same two addresses the other way
 * round, and returns; the attempt ends after Timeout, which must not be 0. Codes: INVALID_STATE
 * (the VI is not Idle), INVALID_ADDRESS, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                        IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG Timeout);

/* Tells whether the attempt has ended, and how; a failure is told once. On success RemoteViAttribs
 * receives the peer's attributes. Codes: NOT_DONE, TIMEOUT (also if the peer's host cannot be
 * reached), REJECT, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (the attribute is not the
 * peer's), INVALID_STATE (no attempt was begun, or VipDisconnect ended it), ERROR_RESOURCE. */
extern VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle,
                                     OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Waits for the end of the attempt, which Timeout of VipConnectPeerRequest limits, and tells what
 * VipConnectPeerDone tells. Codes: TIMEOUT, REJECT, INVALID_RELIABILITY_LEVEL, INVALID_MTU,
 * INVALID_QOS, INVALID_STATE, ERROR_RESOURCE (also if another thread waits already). */
extern VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle,
                                     OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* ==== Protection tags and memory ==== */

/* Creates a protection tag. Code: ERROR_RESOURCE. */
extern VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE *Ptag);

/* Destroys a protection tag. Code: ERROR_RESOURCE (a VI or a region uses the tag). */
extern VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);

/* Registers Length bytes (not 0) at any address; they must stay mapped while they are registered.
 * NULL MemAttribs means the default tag and no RDMA by peers. Codes: ERROR_RESOURCE (also for a
 * Length above MaxRegisterBlockBytes), INVALID_PTAG, INVALID_RDMAREAD. */
extern VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                                 IN VIP_ULONG Length, IN VIP_MEM_ATTRIBUTES *MemAttribs,
                                 OUT VIP_MEM_HANDLE *MemoryHandle);

/* Ends a registration; VirtualAddress must be the address that was registered. After the return
 * nothing arrives in the memory any more. */
extern VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                                   IN VIP_MEM_HANDLE MemoryHandle);

/* Reports the attributes of a region; Address must be the address that was registered. */
extern VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                              IN VIP_MEM_HANDLE MemoryHandle, OUT VIP_MEM_ATTRIBUTES *MemAttribs);

/* Changes the attributes of a region; Address must be the address that was registered. Over some
 * RDMA devices peers then lose their access: see VipRegisterMem(3). Codes: INVALID_PTAG,
 * INVALID_RDMAREAD, ERROR_RESOURCE. */
extern VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                                      IN VIP_MEM_HANDLE MemoryHandle,
                                      IN VIP_MEM_ATTRIBUTES *MemAttribs);

/* ==== Work queues ==== */

/* Posts a send or an RDMA, in any state; never blocks. MemoryHandle is that of the region in which
 * the descriptor lies. The descriptor belongs to the library until it completes. An error in the
 * descriptor is not a return value: its Status shows it, or the error handler is told. */
extern VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);

/* Takes the oldest send descriptor if it is complete; otherwise *DescriptorPtr is set to NULL.
 * Codes: NOT_DONE, DESCRIPTOR_ERROR (the descriptor has failed or, if it is NULL, the queue is
 * empty). */
extern VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Waits for the completion of the oldest send descriptor and takes it; does not wait if the queue
 * is empty. Codes: TIMEOUT, DESCRIPTOR_ERROR (as for VipSendDone), ERROR_RESOURCE. */
extern VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut,
                              OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Has Handler called once, with the next completed send descriptor, also with one that is complete
 * already. Context is passed on to Handler. Codes: INVALID_PARAMETER (also if the send queue has a
 * completion queue), ERROR_RESOURCE. */
extern VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN VIP_VI_CALLBACK Handler);

/* Posts a receive, in any state; never blocks. MemoryHandle, the descriptor and its errors are as
 * for VipPostSend. */
extern VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);

/* Does with receive descriptors what VipSendDone does with send descriptors. Codes: NOT_DONE,
 * DESCRIPTOR_ERROR. */
extern VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Does with receive descriptors what VipSendWait does with send descriptors. Codes: TIMEOUT,
 * DESCRIPTOR_ERROR, ERROR_RESOURCE. */
extern VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut,
                              OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Does with receive descriptors what VipSendNotify does with send descriptors. Codes:
 * INVALID_PARAMETER, ERROR_RESOURCE. */
extern VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN VIP_VI_CALLBACK Handler);

/* ==== Completion queues ==== */

/* Creates a completion queue for EntryCount entries, 1 to MaxCQEntries; it grows before an entry
 * would be lost. Code: ERROR_RESOURCE (also for an EntryCount above MaxCQEntries). */
extern VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount,
                              OUT VIP_CQ_HANDLE *CQHandle);

/* Destroys a completion queue and its entries, and ends the waits of other threads on it. Code:
 * ERROR_RESOURCE (a work queue is attached). */
extern VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);

/* Changes the size of a completion queue. Code: ERROR_RESOURCE (it holds more than EntryCount
 * entries, or EntryCount is above MaxCQEntries). */
extern VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);

/* Takes the oldest entry, which says what work queue has completed a descriptor: the receive queue
 * of ViHandle if RecvQueue is VIP_TRUE, else the send queue. The program then takes the descriptor
 * with VipRecvDone or VipSendDone. Code: NOT_DONE. */
extern VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE *ViHandle,
                            OUT VIP_BOOLEAN *RecvQueue);

/* Waits for an entry and takes it as VipCQDone does. Codes: TIMEOUT, ERROR_RESOURCE. */
extern VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout,
                            OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);

/* Has Handler called once, with the next entry, also with one that is there already. Context is
 * passed on to Handler. Code: ERROR_RESOURCE. */
extern VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context,
                              IN VIP_CQ_CALLBACK Handler);

/* ==== Errors and management ==== */

/* Sets the handler of asynchronous errors, to which Context is passed on. A NULL Handler brings
 * back the default one, which writes a line to standard error. */
extern VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                                   IN VIP_ERROR_HANDLER Handler);

/* Fills in the structure that InfoType asks for. VIP_SMI_AUTODISCOVERY: a VIP_AUTODISCOVERY_LIST,
 * with the NIC's own address and then those of vip_hosts(5). VIADUCT_SMI_DEVICE: a
 * VIADUCT_DEVICE_INFO. */
extern VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType,
                                               OUT VIP_PVOID SysManInfo);

/* ==== Name service ==== */

/* Starts the name service of the NIC handle; may be called again. NSInitInfo is ignored and may be
 * NULL. */
extern VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);

/* Writes one of the host addresses of Name, the one whose number, from 0, is NameIndex. The
 * discriminator in Address and its length stay as they are. Code: ERROR_NAMESERVICE (the name is
 * unknown, NameIndex is too large, or the name service is not running). */
extern VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR *Name,
                                     OUT VIP_NET_ADDRESS *Address, IN VIP_ULONG NameIndex);

/* Writes the name of the host that has an address. *NameLen is, before the call, the room in Name
 * in bytes and, after it, the length of the name without its terminator. Codes: ERROR_NAMESERVICE
 * (the address has no name, or the name service is not running), ERROR_RESOURCE (also if the name
 * and its terminator do not fit). */
extern VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *Address,
                                     OUT VIP_CHAR *Name, IN OUT VIP_ULONG *NameLen);

/* Stops the name service; addresses that were found before stay valid. Code: ERROR_NAMESERVICE (it
 * was not running). */
extern VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

/* ==== Vendor additions of cLAN ==== */

/* Tags of completion queues: both functions only check their arguments. Code:
 * ERROR_NOT_SUPPORTED. */
extern VIP_RETURN VipAddTagCQ(IN VIP_CQ_HANDLE CQHandle, IN OUT VIP_EVENT_HANDLE *Event,
                              IN VIP_ULONG Tag, IN VIP_ULONG Priority);
extern VIP_RETURN VipRemoveTagCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_EVENT_HANDLE Event,
                                 IN VIP_ULONG Tag);

/* Deferred sends (VIP_SERVICE_DFC): the function only checks its arguments. Code:
 * ERROR_NOT_SUPPORTED. */
extern VIP_RETURN VipPostDeferredSends(IN VIP_VI_HANDLE ViHandle, IN VIP_BOOLEAN EnableInterrupt,
                                       OUT VIP_BOOLEAN *SendsDeferred);

/* Returns and stores a pointer of the program's own, which the library keeps with a VI. The pointer
 * is NULL if none was stored, or for a bad handle. */
extern VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);
extern void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID UserData);

#ifdef __cplusplus
}
#endif

#undef VIADUCT_VIPL_EXTENSION

#endif /* VIADUCT_VIPL_H_ */
