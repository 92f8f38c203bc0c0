extern "C" {
#include "vipl/examples/fileserve.h"

#include "vipl/examples/fileproto.h"
}

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace {

std::string Message(unsigned kind, const std::string& payload, off_t value) {
  std::string message(FP_HEADER_SIZE + payload.size(), '\0');
  message.replace(FP_HEADER_SIZE, payload.size(), payload);
  fp_pack(message.data(), kind, payload.size(), value);
  return message;
}

TEST(FileProto, PacksAndUnpacks) {
  const std::string message = Message(FP_DATA, "abc", 0x123456789abcdef);
  EXPECT_EQ(message.substr(0, FP_HEADER_SIZE),
            std::string("\x06\x00\x00\x03VIAF\x01\x23\x45\x67\x89\xab\xcd\xef", 16));
  fp_message header;
  ASSERT_EQ(fp_unpack(message.data(), message.size(), &header), 0);
  EXPECT_EQ(header.kind, unsigned{FP_DATA});
  EXPECT_EQ(header.count, 3u);
  EXPECT_EQ(header.value, 0x123456789abcdef);
}

TEST(FileProto, ACreditIsItsWord) {
  char message[FP_CREDIT_SIZE];
  ASSERT_EQ(fp_pack_credit(message, 9), unsigned{FP_CREDIT_SIZE});
  EXPECT_EQ(fp_word(message), FP_WORD(FP_CREDIT, 9));
  fp_message header;
  ASSERT_EQ(fp_unpack(message, sizeof message, &header), 0);
  EXPECT_EQ(header.kind, unsigned{FP_CREDIT});
  EXPECT_EQ(header.count, 9u);
}

TEST(FileProto, RefusesMalformedMessages) {
  fp_message header;
  const std::string good = Message(FP_GET, "name", 0);
  ASSERT_EQ(fp_unpack(good.data(), good.size(), &header), 0);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(fp_unpack(good.data(), length, &header), -1) << length;
  }
  std::string bad = good + "x";
  EXPECT_EQ(fp_unpack(bad.data(), bad.size(), &header), -1);
  bad = good;
  bad[4] = 'X';  // the magic
  EXPECT_EQ(fp_unpack(bad.data(), bad.size(), &header), -1);
  bad = good;
  bad[8] = '\x80';  // no file is that long
  EXPECT_EQ(fp_unpack(bad.data(), bad.size(), &header), -1);
  for (int kind : {0, 9, 255}) {
    bad = good;
    bad[0] = static_cast<char>(kind);
    EXPECT_EQ(fp_unpack(bad.data(), bad.size(), &header), -1) << kind;
  }
  bad = Message(FP_FILE, "payload", 7);
  EXPECT_EQ(fp_unpack(bad.data(), bad.size(), &header), -1);
}

TEST(FileProto, ServicesAreNumbers) {
  unsigned long service;
  EXPECT_EQ(fp_parse_number("19970", &service), 0);
  EXPECT_EQ(service, 19970u);
  EXPECT_EQ(fp_parse_number("18446744073709551615", &service), 0);
  for (const char* text : {"", "0", "-1", "+1", "1x", " 1", "18446744073709551616"}) {
    EXPECT_EQ(fp_parse_number(text, &service), -1) << text;
  }
  unsigned char discriminator[8];
  fp_discriminator(19970, discriminator);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(discriminator), 8),
            std::string("\0\0\0\0\0\0\x4e\x02", 8));
}

class Session : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/fileserve_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    char* root = realpath(folder.c_str(), nullptr);
    folder_ = root;
    free(root);
    root_ = folder_ + "/root";
    ASSERT_EQ(mkdir(root_.c_str(), 0700), 0);
    ASSERT_EQ(mkdir((root_ + "/sub").c_str(), 0700), 0);
    fs_start(&session_, root_.c_str());
  }

  void TearDown() override {
    fs_end(&session_);
    EXPECT_EQ(system(("rm -rf '" + folder_ + "'").c_str()), 0);
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }

  const char* Take(const std::string& message) {
    return fs_take(&session_, message.data(), message.size());
  }

  // The next message of the server.
  fp_message Next() {
    fp_message header{};
    EXPECT_TRUE(fs_ready(&session_));
    payload_.assign(FP_MESSAGE_SIZE, '\0');
    const unsigned length = fs_next(&session_, payload_.data());
    EXPECT_EQ(fp_unpack(payload_.data(), length, &header), 0);
    payload_ = payload_.substr(FP_HEADER_SIZE, header.count);
    return header;
  }

  // Asks for a file and returns why it is refused, "" if it is not.
  std::string Refusal(const std::string& name) {
    EXPECT_EQ(Take(Message(FP_GET, name, 0)), nullptr);
    return Next().kind == FP_REFUSE ? payload_ : "";
  }

  void Hello(unsigned credits) { ASSERT_EQ(Take(Message(FP_HELLO, "", credits)), nullptr); }

  std::string folder_, root_, payload_;
  fs_session session_;
};

TEST_F(Session, SendsAFileInPieces) {
  const std::string text(FP_PAYLOAD_SIZE + 1, 'x');
  Write("root/sub/file", text);
  Hello(10);
  EXPECT_FALSE(fs_ready(&session_));
  ASSERT_EQ(Take(Message(FP_GET, "sub/file", 0)), nullptr);
  EXPECT_EQ(Next().kind, unsigned{FP_FILE});
  fp_message data = Next();
  EXPECT_EQ(data.kind, unsigned{FP_DATA});
  EXPECT_EQ(data.count, unsigned{FP_PAYLOAD_SIZE});
  EXPECT_EQ(data.value, 0);
  data = Next();
  EXPECT_EQ(data.count, 1u);
  EXPECT_EQ(data.value, FP_PAYLOAD_SIZE);
  fp_message end = Next();
  EXPECT_EQ(end.kind, unsigned{FP_END});
  EXPECT_EQ(end.value, static_cast<off_t>(text.size()));
  EXPECT_FALSE(fs_ready(&session_));
  EXPECT_EQ(Take(Message(FP_BYE, "", 0)), nullptr);
  EXPECT_TRUE(session_.finished);
  EXPECT_EQ(session_.files, 1u);
}

TEST_F(Session, SendsNothingWithoutCredits) {
  Write("root/file", "text");
  Hello(2);
  ASSERT_EQ(Take(Message(FP_GET, "file", 0)), nullptr);
  Next();
  Next();
  EXPECT_FALSE(fs_ready(&session_));
  EXPECT_EQ(fs_take_word(&session_, FP_WORD(FP_CREDIT, 1)), nullptr);
  EXPECT_EQ(Next().kind, unsigned{FP_END});
}

TEST_F(Session, AnEmptyFileHasNoData) {
  Write("root/empty", "");
  Hello(10);
  ASSERT_EQ(Take(Message(FP_GET, "empty", 0)), nullptr);
  EXPECT_EQ(Next().kind, unsigned{FP_FILE});
  EXPECT_EQ(Next().kind, unsigned{FP_END});
}

TEST_F(Session, ServesNothingFromElsewhere) {
  Write("root/file", "");
  Write("secret", "");
  Write("root_too", "");
  ASSERT_EQ(symlink("../secret", (root_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("../root_too", (root_ + "/neighbour").c_str()), 0);
  ASSERT_EQ(symlink("file", (root_ + "/inner").c_str()), 0);
  Hello(100);
  for (const char* name :
       {"../secret", "sub/../../secret", "/etc/passwd", "..", "link", "neighbour", "sub/../file"}) {
    EXPECT_EQ(Refusal(name), "Permission denied") << name;
  }
  EXPECT_EQ(Refusal("inner"), "");
}

TEST_F(Session, ServesRegularFilesOnly) {
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  Hello(100);
  EXPECT_EQ(Refusal("pipe"), "Not a regular file");
  EXPECT_EQ(Refusal("sub"), "Not a regular file");
  EXPECT_EQ(Refusal("missing"), "No such file or directory");
}

TEST_F(Session, TellsWhenAFileShrinks) {
  Write("root/file", std::string(100000, 'x'));
  Hello(10);
  ASSERT_EQ(Take(Message(FP_GET, "file", 0)), nullptr);
  Next();
  Next();
  ASSERT_EQ(truncate((root_ + "/file").c_str(), 10), 0);
  EXPECT_EQ(Next().kind, unsigned{FP_REFUSE});
  EXPECT_EQ(payload_, "The file has become shorter");
  EXPECT_FALSE(fs_ready(&session_));
}

TEST_F(Session, RefusesWhatBreaksTheRules) {
  EXPECT_NE(Take("xx"), nullptr);
  EXPECT_NE(Take(Message(FP_GET, "file", 0)), nullptr) << "before FP_HELLO";
  EXPECT_NE(fs_take_word(&session_, FP_WORD(FP_CREDIT, 1)), nullptr) << "before FP_HELLO";
  EXPECT_NE(Take(Message(FP_HELLO, "", 0)), nullptr);
  EXPECT_NE(Take(Message(FP_HELLO, "", FP_MAX_CREDITS + 1)), nullptr);
  Hello(FP_MAX_CREDITS);
  EXPECT_NE(Take(Message(FP_HELLO, "", 1)), nullptr) << "a second one";
  EXPECT_NE(fs_take_word(&session_, FP_WORD(FP_CREDIT, 1)), nullptr) << "more than the most";
  EXPECT_NE(fs_take_word(&session_, FP_WORD(FP_BYE, 0)), nullptr);
  EXPECT_NE(Take(Message(FP_GET, std::string("a\0b", 3), 0)), nullptr);
  EXPECT_NE(Take(Message(FP_GET, std::string(FP_NAME_SIZE + 1, 'a'), 0)), nullptr);
  EXPECT_NE(Take(Message(FP_END, "", 0)), nullptr) << "of a server";
  EXPECT_EQ(Take(Message(FP_GET, "missing", 0)), nullptr);
  EXPECT_NE(Take(Message(FP_GET, "missing", 0)), nullptr) << "while the answer is under way";
}

}  // namespace
