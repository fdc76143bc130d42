// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace baton::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Duration, IsAWholeNumberAndAUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("2s"), 2s);
  EXPECT_EQ(parse_duration("1m"), 60s);
  EXPECT_EQ(parse_duration("24h"), 24h);
}

TEST(Duration, WithoutAUnitIsRefusedWithAHint) {
  EXPECT_THAT(parse_duration("30").error(), HasSubstr("write 30ms, 30s or 30m"));
}

TEST(Duration, OutsideItsRangeIsRefused) {
  EXPECT_THAT(parse_duration("0s").error(), HasSubstr("above zero"));
  EXPECT_THAT(parse_duration("-1s").error(), HasSubstr("above zero"));
  EXPECT_THAT(parse_duration("25h").error(), HasSubstr("longer than a day"));
  EXPECT_THAT(parse_duration("99999999999999999999h").error(), HasSubstr("longer than a day"));
  EXPECT_THAT(parse_duration("18446744073709551615m").error(), HasSubstr("longer than a day"));
}

TEST(Duration, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "s", "1.5s", "1 s", "1S", "1d", " 1s", "1s ", "+1s", "1s2"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Size, IsBytesOrHasABinaryUnit) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("8MiB"), 8u << 20);
  EXPECT_EQ(parse_size("1024GiB"), 1ULL << 40);
}

TEST(Size, OfAnotherShapeOrOutsideItsRangeIsRefused) {
  for (const char* text : {"", "0", "-1", "64KB", "64kib", "1.5MiB", "KiB", "1025GiB",
                           "99999999999999999999", "18446744073709551615GiB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
  EXPECT_THAT(parse_size("64KB").error(), HasSubstr("64KiB"));
}

TEST(Number, IsWholeAndInItsRange) {
  EXPECT_EQ(parse_number("0", 0, 4), 0u);
  EXPECT_EQ(parse_number("4", 0, 4), 4u);
  for (const char* text : {"", "5", "-1", "1.0", "0x1", "1 ", "99999999999999999999"}) {
    EXPECT_FALSE(parse_number(text, 0, 4)) << text;
  }
}

TEST(ListenAddress, IsHostAndPort) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:8080"), (model::Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_listen_address("localhost:0"), (model::Endpoint{"localhost", 0}));
  EXPECT_EQ(parse_listen_address("[::]:65535"), (model::Endpoint{"::", 65535}));
}

TEST(ListenAddress, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "8080", "host", "host:", "host:65536", "host:x", "::1:80", "[::1]",
                           "[::1]80", "[::1:80", "[zz]:80", "[]:80", "256.0.0.1:80", "1.2.3:80",
                           "a b:80", "http://a:80", "a/b:80"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
  EXPECT_THAT(parse_listen_address(":8080").error(), HasSubstr("write 0.0.0.0:8080"));
  EXPECT_THAT(parse_listen_address("::1:80").error(), HasSubstr("brackets"));
}

TEST(WorkerUrl, IsHttpHostAndPort) {
  EXPECT_EQ(parse_worker_url("http://gpu-1:9001"), (model::Endpoint{"gpu-1", 9001}));
  EXPECT_EQ(parse_worker_url("http://[::1]:9001/"), (model::Endpoint{"::1", 9001}));
}

TEST(WorkerUrl, OneServerHasOneSpelling) {
  EXPECT_EQ(parse_worker_url("http://GPU-1:9001"), parse_worker_url("http://gpu-1:9001"));
  EXPECT_EQ(parse_worker_url("http://[0:0::0:1]:9001"), parse_worker_url("http://[::1]:9001"));
}

TEST(WorkerUrl, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "gpu:9001", "http://", "http://gpu", "http://gpu:0", "http://:9001",
                           "ftp://gpu:1", "HTTP//gpu:1"}) {
    EXPECT_FALSE(parse_worker_url(text)) << text;
  }
  EXPECT_THAT(parse_worker_url("https://gpu:1").error(), HasSubstr("write http://host:port"));
  EXPECT_THAT(parse_worker_url("http://gpu:1/v1").error(), HasSubstr("must end after the port"));
  EXPECT_THAT(parse_worker_url("http://gpu:1?x").error(), HasSubstr("must end after the port"));
  EXPECT_THAT(parse_worker_url("http://me:pw@gpu:1").error(), Not(HasSubstr("pw")));
}

TEST(Name, IsVisibleText) {
  EXPECT_EQ(parse_name("org/model 7B"), "org/model 7B");
  for (const char* text : {"", " a", "a ", "a\nb"}) EXPECT_FALSE(parse_name(text)) << text;
}

TEST(Shown, IsShortAndHarmless) {
  EXPECT_EQ(shown("a\nb\x1b[2J"), "'a?b?[2J'");
  EXPECT_LT(shown(std::string(1000, 'x')).size(), 80u);
}

TEST(Nearest, FindsTheMistypedWordOrNothing) {
  constexpr std::array<std::string_view, 3> kWords{"prefill", "decode", "aggregated"};
  EXPECT_EQ(nearest("prefil", kWords), "prefill");
  EXPECT_EQ(nearest("Decode", kWords), "decode");
  EXPECT_EQ(nearest("agregatted", kWords), "aggregated");
  EXPECT_EQ(nearest("both", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kWords), "");
}

TEST(Nearest, TwoLettersSwappedAreOneMistake) {
  constexpr std::array<std::string_view, 2> kWords{"add", "drain"};
  EXPECT_EQ(nearest("drian", kWords), "drain");
  EXPECT_EQ(nearest("Drani", kWords), "drain");
  EXPECT_EQ(nearest("adn", kWords), "add");
  EXPECT_EQ(nearest("nidra", kWords), "");
}

TEST(Nearest, TakesTheOnlyWordThatBeginsWithTheText) {
  constexpr std::array<std::string_view, 3> kWords{"version", "verbose-errors", "warmup"};
  EXPECT_EQ(nearest("vers", kWords), "version");
  EXPECT_EQ(nearest("ver", kWords), "");
  EXPECT_EQ(nearest("w", kWords), "");
}

TEST(Values, ADurationMayBeZeroWhereThatMeansSomething) {
  EXPECT_EQ(parse_duration_or_zero("0s"), std::chrono::milliseconds(0));
  EXPECT_EQ(parse_duration_or_zero("2s"), std::chrono::milliseconds(2000));
  for (const char* text : {"0", "-1s", "25h", "x", ""}) {
    EXPECT_FALSE(parse_duration_or_zero(text)) << text;
  }
}

TEST(Values, AServerUrlSaysWhetherItIsTls) {
  const auto plain = parse_server_url("http://Host:1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->endpoint, (model::Endpoint{"host", 1}));
  EXPECT_FALSE(plain->tls);
  const auto tls = parse_server_url("https://[::1]:2/");
  ASSERT_TRUE(tls);
  EXPECT_EQ(tls->endpoint, (model::Endpoint{"::1", 2}));
  EXPECT_TRUE(tls->tls);
  for (const char* text : {"host:1", "http://host", "https://host:1/v3", "https://u:p@host:1"}) {
    EXPECT_FALSE(parse_server_url(text)) << text;
  }
}

}  // namespace
}  // namespace baton::config
