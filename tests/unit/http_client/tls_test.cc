// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/tls.h"

#include "support/certificate.h"
#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <string>
#include <sys/stat.h>

namespace baton::http_client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct TlsTest : testing::Test {
  static std::string problem(const TlsOptions& options) {
    const auto made = make_tls_client(options);
    return made ? "none" : made.error().message();
  }
  test::TemporaryDirectory directory;
};

TEST_F(TlsTest, AlwaysChecksTheServersCertificate) {
  const auto made = make_tls_client({});
  ASSERT_TRUE(made) << made.error().message();
  SSL_CTX* const context = (*made)->context.native_handle();
  EXPECT_EQ(SSL_CTX_get_verify_mode(context), SSL_VERIFY_PEER);
  EXPECT_EQ(SSL_CTX_get_min_proto_version(context), TLS1_2_VERSION);
}

TEST_F(TlsTest, TakesAnAuthorityAndACertificateOfItsOwn) {
  const test::Certificate own("client");
  EXPECT_EQ(problem({.ca_file = directory.write("ca.pem", test::Certificate("ca").certificate),
                     .certificate_file = directory.write("own.pem", own.certificate),
                     .key_file = directory.write("own.key", own.key)}),
            "none");
}

TEST_F(TlsTest, NamesAFileThatItCannotUse) {
  EXPECT_THAT(problem({.ca_file = directory.path("nowhere.pem")}),
              AllOf(HasSubstr("nowhere.pem"), HasSubstr("there is no such file")));
  EXPECT_THAT(problem({.certificate_file = directory.write("empty.pem", "nothing of use\n")}),
              AllOf(HasSubstr("empty.pem"), HasSubstr("no PEM")));
  EXPECT_THAT(problem({.key_file = directory.write("odd.key", "-----BEGIN NONSENSE-----\n")}),
              HasSubstr("cannot use " + directory.path("odd.key")));
}

// Regression: OpenSSL would have waited for somebody to write.
TEST_F(TlsTest, DoesNotWaitForAPipeThatIsNamedAsAFile) {
  const std::string pipe = directory.path("pipe.pem");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(problem({.ca_file = pipe}), AllOf(HasSubstr("pipe.pem"), HasSubstr("it is a pipe")));
}

}  // namespace
}  // namespace baton::http_client
