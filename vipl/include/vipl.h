/*
 * Viaduct: the Virtual Interface Provider Library (VIPL) API.
 *
 * One header for every dialect of VIPL. A descriptor has the members of the Intel guide and M-VIA
 * (CS, DS[2]) and those of cLAN (Control, Data[1]); the two name the same bytes, so VIPL095, which
 * chose between them, may be defined or not. Valid as C89 (with a 64-bit integer and anonymous
 * unions) up to C++23; includes nothing.
 *
 * Every function returns VIP_SUCCESS, one of the codes listed with it, VIP_INVALID_PARAMETER for a
 * bad handle, pointer or value, or VIP_ERROR_RESOURCE where there is no memory. Every function may
 * be called from any thread. Time-outs are milliseconds; VIP_INFINITE (or 0xFFFFFFFF) waits for
 * ever.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_VIPL_H_
#define VIADUCT_VIPL_H_

/* What programs test for: the guards of the Intel and of the cLAN header. */
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
typedef unsigned long VIP_ULONG; /* 64 bits on LP64, as ever */

typedef unsigned char VIP_UINT8;
typedef unsigned short VIP_UINT16;
typedef unsigned int VIP_UINT32;
/* g++ does not know the word before a typedef. */
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

/* ---- Handles: opaque, checked on every call ---- */

typedef VIP_PVOID VIP_QOS; /* contents undefined by the specification: pass 0 */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE; /* NULL: the default tag, which passes every check */
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_EVENT_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE; /* 1..0x7FFFFFFF; travels as a plain integer */

/* ---- Return codes ---- */

typedef enum {
  VIP_SUCCESS = 0,
  VIP_NOT_DONE = 1,                  /* polled operation not complete yet */
  VIP_INVALID_PARAMETER = 2,         /* bad handle, pointer or value */
  VIP_ERROR_RESOURCE = 3,            /* out of resources, or the object is still in use */
  VIP_TIMEOUT = 4,                   /* the given time has passed */
  VIP_REJECT = 5,                    /* the remote side called VipConnectReject */
  VIP_INVALID_RELIABILITY_LEVEL = 6, /* not supported, or not the remote VI's */
  VIP_INVALID_MTU = 7,               /* MaxTransferSize not supported, or not the remote VI's */
  VIP_INVALID_QOS = 8,               /* quality of service not supported, or not the remote VI's */
  VIP_INVALID_PTAG = 9,              /* no protection tag of this NIC */
  VIP_INVALID_RDMAREAD = 10,         /* RDMA read asked for, not supported */
  VIP_DESCRIPTOR_ERROR = 11,    /* descriptor completed in error; NULL descriptor: empty queue */
  VIP_INVALID_STATE = 12,       /* the VI is in the wrong state */
  VIP_ERROR_NAMESERVICE = 13,   /* name service not initialised, or unknown name */
  VIP_NO_MATCH = 14,            /* nobody waits for this discriminator */
  VIP_NOT_REACHABLE = 15,       /* the network says that the remote host cannot be reached */
  VIP_ERROR_NOT_SUPPORTED = 16, /* optional function */
  VIP_INVALID_ADDRESS = 18      /* the host part is not this NIC's address */
} VIP_RETURN;

/* ---- Reliability levels: a bit set in VIP_NIC_ATTRIBUTES, one bit in VIP_VI_ATTRIBUTES ---- */

typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE 0x1
#define VIP_SERVICE_RELIABLE_DELIVERY 0x2
#define VIP_SERVICE_RELIABLE_RECEPTION 0x4

/* Vendor bits of cLAN. */
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
  VIP_STATE_ERROR = 3 /* left only by VipDisconnect */
} VIP_VI_STATE;

typedef enum _VIP_RESOURCE_CODE {
  VIP_RESOURCE_NIC = 0,
  VIP_RESOURCE_VI = 1,
  VIP_RESOURCE_CQ = 2,
  VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

typedef enum _VIP_ERROR_CODE {
  VIP_ERROR_POST_DESC = 0,      /* bad address, handle or alignment of a posted descriptor */
  VIP_ERROR_CONN_LOST = 1,      /* the VI is in VIP_STATE_ERROR */
  VIP_ERROR_RECVQ_EMPTY = 2,    /* a message found no receive and was dropped */
  VIP_ERROR_VI_OVERRUN = 3,     /* too many descriptors posted */
  VIP_ERROR_RDMAW_PROT = 4,     /* an incoming RDMA write was refused */
  VIP_ERROR_RDMAW_DATA = 5,     /* an incoming RDMA write was corrupt */
  VIP_ERROR_RDMAW_ABORT = 6,    /* an incoming RDMA write was aborted */
  VIP_ERROR_RDMAR_PROT = 7,     /* an incoming RDMA read was refused */
  VIP_ERROR_COMP_PROT = 8,      /* a completion status could not be written */
  VIP_ERROR_RDMA_TRANSPORT = 9, /* an RDMA failed in the network */
  VIP_ERROR_CATASTROPHIC = 10   /* the NIC has failed */
} VIP_ERROR_CODE;

/* ---- Addresses ---- */

/*
 * HostAddress holds HostAddressLen bytes of host address, then DiscriminatorLen bytes of
 * discriminator (any values, no terminator). Allocate
 * sizeof(VIP_NET_ADDRESS) + NicAddressLen + MaxDiscriminatorLen.
 */
typedef struct _VIP_NET_ADDRESS {
  VIP_UINT16 HostAddressLen;
  VIP_UINT16 DiscriminatorLen;
  VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* ---- Attributes ---- */

typedef struct _VIP_NIC_ATTRIBUTES {
  VIP_CHAR Name[64];
  VIP_ULONG HardwareVersion;
  VIP_ULONG ProviderVersion;
  VIP_UINT16 NicAddressLen;
  const VIP_UINT8 *LocalNicAddress; /* the provider's memory, valid until VipCloseNic */
  VIP_BOOLEAN ThreadSafe;
  VIP_UINT16 MaxDiscriminatorLen;
  VIP_ULONG MaxRegisterBytes;
  VIP_ULONG MaxRegisterRegions;
  VIP_ULONG MaxRegisterBlockBytes;
  VIP_ULONG MaxVI;
  VIP_ULONG MaxDescriptorsPerQueue;
  VIP_ULONG MaxSegmentsPerDesc;
  VIP_ULONG MaxCQ;
  VIP_ULONG MaxCQEntries;
  VIP_ULONG MaxTransferSize;
  VIP_ULONG NativeMTU;
  VIP_ULONG MaxPtags;
  VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* bits */
  VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* bits */
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
  VIP_RELIABILITY_LEVEL ReliabilityLevel; /* exactly one bit */
  VIP_ULONG MaxTransferSize;
  VIP_QOS QoS;
  VIP_PROTECTION_HANDLE Ptag;
  VIP_BOOLEAN EnableRdmaWrite; /* incoming RDMA writes are allowed */
  VIP_BOOLEAN EnableRdmaRead;  /* incoming RDMA reads are allowed */
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
  VIP_PROTECTION_HANDLE Ptag;
  VIP_BOOLEAN EnableRdmaWrite;
  VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

/* ---- Descriptors: a layout of fixed size and offsets on every machine ---- */

#define VIP_DESCRIPTOR_ALIGNMENT 64 /* bytes; checked when a descriptor is posted */

/* A pointer in 64 bits. */
typedef union {
  VIP_UINT64 AddressBits;
  VIP_PVOID Address;
  struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

typedef struct {
  VIP_PVOID64 Next;          /* the provider's from post to completion */
  VIP_MEM_HANDLE NextHandle; /* the provider's from post to completion */
  VIP_UINT16 SegCount;       /* segments that follow, the address segment included */
  VIP_UINT16 Control;        /* VIP_CONTROL_* */
  VIP_UINT32 Reserved;
  VIP_UINT32 ImmediateData;
  VIP_UINT32 Length;          /* total bytes; after a receive: bytes received */
  volatile VIP_UINT32 Status; /* VIP_STATUS_*; written last, may be polled */
} VIP_CONTROL_SEGMENT;

/* Where an RDMA goes to or comes from. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle;
  VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* A piece of local memory. */
typedef struct {
  VIP_PVOID64 Data;
  VIP_MEM_HANDLE Handle;
  VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union {
  VIP_ADDRESS_SEGMENT Remote;
  VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/* Further segments continue behind DS[1]. */
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

/* VIP_CONTROL_SEGMENT.Control */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004 /* ImmediateData is sent */
#define VIP_CONTROL_QFENCE 0x0008    /* wait for the RDMA reads posted before */
#define VIP_CONTROL_RESERVED 0xFFF0

/* VIP_CONTROL_SEGMENT.Status */
#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002       /* the descriptor is malformed */
#define VIP_STATUS_PROTECTION_ERROR 0x00000004   /* local handle, tag or range */
#define VIP_STATUS_LENGTH_ERROR 0x00000008       /* too long, or Length disagrees */
#define VIP_STATUS_PARTIAL_ERROR 0x00000010      /* the message was cut short */
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020 /* disconnect or error; not processed */
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040    /* the network failed */
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080    /* the region refused the RDMA */
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100  /* the remote receive failed */
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000 /* a receive taken by an RDMA write */
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000 /* ImmediateData was received */
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* ---- Callbacks: run on one thread of the library; any call is allowed there ---- */

typedef struct _VIP_ERROR_DESCRIPTOR {
  VIP_NIC_HANDLE NicHandle;
  VIP_VI_HANDLE ViHandle;
  VIP_CQ_HANDLE CQHandle;
  VIP_DESCRIPTOR *DescriptorPtr;
  VIP_ULONG OpCode;
  VIP_RESOURCE_CODE ResourceCode; /* which of the above has a meaning */
  VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* ---- System management ---- */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct {
  VIP_ULONG NumberOfHops;        /* in: nothing depends on it */
  VIP_NET_ADDRESS **ADAddrArray; /* the library's addresses, valid until VipCloseNic */
  VIP_ULONG NumAdAddrs;          /* in: room in ADAddrArray; out: addresses written, or with a NULL
                                  * ADAddrArray, addresses that there are */
} VIP_AUTODISCOVERY_LIST;

/* Ours: which device serves the NIC, and why. */
#define VIADUCT_SMI_DEVICE ((VIP_ULONG)0x56440001)

typedef struct {
  VIP_CHAR Device[32];
  VIP_CHAR Reason[224];
} VIADUCT_DEVICE_INFO;

/* ==== NIC ==== */

/* Opens a NIC by name; each open gives its own handle. ERROR_RESOURCE; INVALID_PARAMETER for an
 * unknown name. */
extern VIP_RETURN VipOpenNic(IN const VIP_CHAR *DeviceName, OUT VIP_NIC_HANDLE *NicHandle);

/* Closes the handle and releases everything that it still owns. */
extern VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);

/* Reports the NIC's attributes; none of them changes while the NIC is open. */
extern VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES *NicAttribs);

/* ==== VI ==== */

/* Creates an Idle VI. A NULL queue handle leaves that work queue without a completion queue.
 * ERROR_RESOURCE, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, INVALID_PTAG,
 * INVALID_RDMAREAD. */
extern VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES *ViAttribs,
                              IN VIP_CQ_HANDLE SendCQHandle, IN VIP_CQ_HANDLE RecvCQHandle,
                              OUT VIP_VI_HANDLE *ViHandle);

/* Destroys an Idle VI with empty queues. INVALID_STATE when not Idle; ERROR_RESOURCE while
 * descriptors are on a queue. */
extern VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);

/* Changes the attributes of an Idle VI. INVALID_STATE, INVALID_RELIABILITY_LEVEL, INVALID_MTU,
 * INVALID_QOS, INVALID_PTAG, INVALID_RDMAREAD. */
extern VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES *ViAttribs);

/* Reports state, attributes and whether the queues are empty; allowed in every state. */
extern VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE *State,
                             OUT VIP_VI_ATTRIBUTES *ViAttribs, OUT VIP_BOOLEAN *SendQEmpty,
                             OUT VIP_BOOLEAN *RecvQEmpty);

/* ==== Connections, client and server ==== */

/* Waits until a request for LocalAddr arrives; RemoteAddr receives the requester's host address
 * and discriminator and must have room for both. TIMEOUT, ERROR_RESOURCE, INVALID_ADDRESS. */
extern VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                 IN VIP_ULONG Timeout, OUT VIP_NET_ADDRESS *RemoteAddr,
                                 OUT VIP_VI_ATTRIBUTES *RemoteViAttribs,
                                 OUT VIP_CONN_HANDLE *ConnHandle);

/* Connects an Idle VI to the requester; success consumes the handle. On
 * INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, and INVALID_STATE of a VI that was not Idle,
 * the requester keeps waiting; TIMEOUT: it has gone. ERROR_RESOURCE. */
extern VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);

/* Rejects the request and consumes the handle; the requester gets VIP_REJECT. ERROR_RESOURCE. */
extern VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);

/* Connects an Idle VI to whoever waits for RemoteAddr. The host part of LocalAddr is this NIC's
 * address; its discriminator only names the requester. TimeOut 0 is invalid. TIMEOUT,
 * ERROR_RESOURCE, REJECT, NO_MATCH, INVALID_STATE, INVALID_ADDRESS; NOT_REACHABLE, after which a VI
 * of a reliable level is in VIP_STATE_ERROR. */
extern VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                    IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG TimeOut,
                                    OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Ends the connection in any state: outstanding descriptors complete as flushed and the VI is
 * Idle; the peer's VI goes to VIP_STATE_ERROR. */
extern VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* ==== Connections, peer to peer ==== */

/* Starts to connect an Idle VI to the peer that asks for the mirrored pair of addresses.
 * INVALID_STATE, INVALID_ADDRESS, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                        IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG Timeout);

/* Polls for the outcome. NOT_DONE, TIMEOUT, INVALID_STATE, INVALID_RELIABILITY_LEVEL,
 * INVALID_MTU, INVALID_QOS, REJECT, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle,
                                     OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Waits for the outcome until the request's time-out. TIMEOUT, INVALID_STATE,
 * INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, REJECT, ERROR_RESOURCE. */
extern VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle,
                                     OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* ==== Protection tags and memory ==== */

/* Makes a protection tag. ERROR_RESOURCE. */
extern VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE *Ptag);

/* Destroys a tag. ERROR_RESOURCE while a VI or a region uses it. */
extern VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);

/* Registers memory of any alignment. NULL attributes: default tag, no RDMA. ERROR_RESOURCE,
 * INVALID_PTAG, INVALID_RDMAREAD. */
extern VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                                 IN VIP_ULONG Length, IN VIP_MEM_ATTRIBUTES *MemAttribs,
                                 OUT VIP_MEM_HANDLE *MemoryHandle);

/* Ends a registration; VirtualAddress is the one that was registered. */
extern VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                                   IN VIP_MEM_HANDLE MemoryHandle);

/* Reports the attributes of a region. */
extern VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                              IN VIP_MEM_HANDLE MemoryHandle, OUT VIP_MEM_ATTRIBUTES *MemAttribs);

/* Changes the attributes of a region. INVALID_PTAG, INVALID_RDMAREAD, ERROR_RESOURCE. */
extern VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                                      IN VIP_MEM_HANDLE MemoryHandle,
                                      IN VIP_MEM_ATTRIBUTES *MemAttribs);

/* ==== Work queues ==== */

/* Posts a send or RDMA descriptor; never blocks. What is wrong with the descriptor shows in its
 * Status or in the error callback. */
extern VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);

/* Takes the oldest send descriptor if it is complete. NOT_DONE; DESCRIPTOR_ERROR: it failed, or
 * (NULL descriptor) the queue is empty. */
extern VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* As VipSendDone, but waits. TIMEOUT, DESCRIPTOR_ERROR, ERROR_RESOURCE. */
extern VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut,
                              OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Calls Handler once, with the next completed send descriptor. ERROR_RESOURCE. */
extern VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN VIP_VI_CALLBACK Handler);

/* Posts a receive descriptor, in any state; never blocks. */
extern VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);

/* Takes the oldest receive descriptor if it is complete; codes of VipSendDone. */
extern VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* As VipRecvDone, but waits; codes of VipSendWait. */
extern VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut,
                              OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Calls Handler once, with the next completed receive descriptor. ERROR_RESOURCE. */
extern VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN VIP_VI_CALLBACK Handler);

/* ==== Completion queues ==== */

/* Makes a completion queue. ERROR_RESOURCE. */
extern VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount,
                              OUT VIP_CQ_HANDLE *CQHandle);

/* Destroys it with its entries. ERROR_RESOURCE while a work queue is attached. */
extern VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);

/* Changes its size. ERROR_RESOURCE when it holds more entries than that. */
extern VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);

/* Takes the oldest entry: which work queue has completed a descriptor (RecvQueue VIP_TRUE: the
 * receive queue); VipSendDone or VipRecvDone then takes the descriptor. NOT_DONE. */
extern VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE *ViHandle,
                            OUT VIP_BOOLEAN *RecvQueue);

/* As VipCQDone, but waits. TIMEOUT, ERROR_RESOURCE. */
extern VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout,
                            OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);

/* Calls Handler once, with the next entry. ERROR_RESOURCE. */
extern VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context,
                              IN VIP_CQ_CALLBACK Handler);

/* ==== Errors and management ==== */

/* Sets the handler of asynchronous errors; NULL brings back the default, which logs. */
extern VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                                   IN VIP_ERROR_HANDLER Handler);

/* VIP_SMI_AUTODISCOVERY fills a VIP_AUTODISCOVERY_LIST: the NIC's own address, then those of the
 * hosts file. VIADUCT_SMI_DEVICE fills a VIADUCT_DEVICE_INFO. */
extern VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType,
                                               OUT VIP_PVOID SysManInfo);

/* ==== Name service ==== */

/* Starts the name service; harmless when repeated. NSInitInfo is not looked at. */
extern VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);

/* Writes the NameIndex-th host address of a name; the discriminator and its length stay.
 * ERROR_NAMESERVICE. */
extern VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR *Name,
                                     OUT VIP_NET_ADDRESS *Address, IN VIP_ULONG NameIndex);

/* Writes the name of a host address; NameLen is in: room, out: length. ERROR_NAMESERVICE;
 * ERROR_RESOURCE when there is not enough room. */
extern VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *Address,
                                     OUT VIP_CHAR *Name, IN OUT VIP_ULONG *NameLen);

/* Stops the name service; addresses stay valid. ERROR_NAMESERVICE. */
extern VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

/* ==== Vendor additions of cLAN ==== */

/* Completion queue tags. ERROR_NOT_SUPPORTED. */
extern VIP_RETURN VipAddTagCQ(IN VIP_CQ_HANDLE CQHandle, IN OUT VIP_EVENT_HANDLE *Event,
                              IN VIP_ULONG Tag, IN VIP_ULONG Priority);
extern VIP_RETURN VipRemoveTagCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_EVENT_HANDLE Event,
                                 IN VIP_ULONG Tag);

/* Deferred sends (VIP_SERVICE_DFC). ERROR_NOT_SUPPORTED. */
extern VIP_RETURN VipPostDeferredSends(IN VIP_VI_HANDLE ViHandle, IN VIP_BOOLEAN EnableInterrupt,
                                       OUT VIP_BOOLEAN *SendsDeferred);

/* A pointer of the program's own, kept with a VI; NULL when none was set, or for a bad handle. */
extern VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);
extern void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID UserData);

#ifdef __cplusplus
}
#endif

#undef VIADUCT_VIPL_EXTENSION

#endif /* VIADUCT_VIPL_H_ */
