// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/http_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace baton::wire {
namespace {

using testing::HasSubstr;

constexpr HttpLimits kLimits{.header_bytes = 4096, .body_bytes = 1000};

// What became of a byte stream: every finished request, then the failure or the state at its end.
struct RequestsOutcome {
  std::vector<std::string> requests;
  std::string end;
  bool operator==(const RequestsOutcome&) const = default;
};

std::string describe_request(RequestParser& parser) {
  std::string text = parser.head().method + ' ' + parser.head().target;
  for (std::size_t i = 0; i < parser.head().headers.size(); ++i) {
    const auto field = parser.head().headers[i];
    text.append("|").append(field.name).append("=").append(field.value);
  }
  return text + "|" + parser.body();
}

// Feeds `bytes` in pieces of `step`, as a session would.
RequestsOutcome parse_requests(std::string_view bytes, std::size_t step,
                               HttpLimits limits = kLimits) {
  RequestParser parser(limits);
  RequestsOutcome outcome;
  while (true) {
    const std::string_view piece = bytes.substr(0, step);
    std::string_view rest = piece;
    while (true) {
      const auto [consumed, status] = parser.feed(rest);
      rest.remove_prefix(consumed);
      if (status == ParseStatus::Failed) {
        outcome.end = parser.error().info().label;
        outcome.end.append(": ").append(parser.error().message());
        return outcome;
      }
      if (status == ParseStatus::NeedMore) {
        EXPECT_TRUE(rest.empty());
        break;
      }
      if (status == ParseStatus::Done) {
        outcome.requests.push_back(describe_request(parser));
        parser.next();
        EXPECT_TRUE(parser.idle());
        if (rest.empty()) break;
      }
    }
    bytes.remove_prefix(piece.size());
    if (bytes.empty()) break;
  }
  outcome.end = parser.idle() ? "idle" : "unfinished";
  return outcome;
}

RequestsOutcome run_whole(std::string_view bytes) { return parse_requests(bytes, bytes.size()); }

struct RefusedCase {
  const char* name;
  std::string bytes;
  const char* problem;  // part of the message
};

std::string post(std::string_view fields, std::string_view body = "") {
  return std::string("POST / HTTP/1.1\r\nHost: a\r\n").append(fields).append("\r\n").append(body);
}

void PrintTo(const RefusedCase& c, std::ostream* out) { *out << c.name; }

class RefusedRequest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedRequest, IsRefusedWithAReason) {
  const auto outcome = run_whole(GetParam().bytes);
  EXPECT_THAT(outcome.end, HasSubstr("invalid_request: "));
  EXPECT_THAT(outcome.end, HasSubstr(GetParam().problem));
  EXPECT_TRUE(outcome.requests.empty());
}

TEST_P(RefusedRequest, IsRefusedAlikeHoweverItIsCut) {
  const auto whole = run_whole(GetParam().bytes);
  for (std::size_t step = 1; step < GetParam().bytes.size(); ++step) {
    EXPECT_EQ(parse_requests(GetParam().bytes, step), whole) << "in pieces of " << step;
  }
}

const RefusedCase kRefused[] = {
    {"BareLfInHead", "GET / HTTP/1.1\nHost: a\n\n", "LF without CR"},
    {"BareLfAfterField", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "LF without CR"},
    {"BareLfAsBlankLine", "GET / HTTP/1.1\r\nHost: a\r\n\n", "LF without CR"},
    {"BareCr", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "CR without LF"},
    {"BareCrAtLineStart", "GET / HTTP/1.1\r\n\rHost: a\r\n\r\n", "CR without LF"},
    {"Nul", std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 30), "control byte"},
    {"ControlByte", "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", "control byte"},
    {"Delete", "GET / HTTP/1.1\r\nHost: a\x7f\r\n\r\n", "control byte"},
    {"FoldedBySpace", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", "folded"},
    {"FoldedByTab", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n", "folded"},
    {"SpaceBeforeFirstField", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "folded"},
    {"SpaceBeforeRequestLine", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", "white space"},
    {"SpaceBeforeColon", post("Content-Length : 3\r\n", "abc"), "header field"},
    {"SpaceBeforeColonOfAnyField", post("X : 3\r\n"), "colon"},
    {"TabBeforeColon", post("X\t: 3\r\n"), "malformed HTTP head"},
    {"SpaceInName", post("X Y: 3\r\n"), "malformed HTTP head"},
    {"EmptyName", post(": x\r\n"), "malformed HTTP head"},
    {"NoColon", post("Nonsense\r\n"), "malformed HTTP head"},
    {"NonAsciiName", post("X\xc3\xa9: 1\r\n"), "malformed HTTP head"},
    {"TwoHosts", post("Host: b\r\n"), "more than one Host"},
    {"NoHost", "GET / HTTP/1.1\r\n\r\n", "needs a Host"},
    {"Http09", "GET /\r\n\r\n", "request line"},
    {"Http2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "version"},
    {"Http12", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "version"},
    {"Preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"},
    {"Rtsp", "SETUP / RTSP/1.0\r\nHost: a\r\n\r\n", "version"},
    {"LowerCaseVersion", "GET / http/1.1\r\nHost: a\r\n\r\n", "version"},
    {"TwoSpaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "one space"},
    {"SpaceInTarget", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "one space"},
    {"TabInRequestLine", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "one space"},
    {"SpaceAfterVersion", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "one space"},
    {"UnknownMethod", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "ethod"},
    {"LowerCaseMethod", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "ethod"},
    {"AsteriskWithGet", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "target"},
    {"RelativeTarget", "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n", "malformed HTTP head"},
    {"ForeignScheme", "GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", "target"},
    {"EmptyAuthority", "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", "malformed HTTP head"},
    {"LengthAndChunked", post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
     "Content-Length"},
    {"ChunkedAndLength", post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"DifferingLengths", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"),
     "Content-Length"},
    {"IdenticalLengths", post("Content-Length: 3\r\ncontent-length: 3\r\n", "abc"),
     "Content-Length"},
    {"ListOfLengths", post("Content-Length: 3, 3\r\n", "abc"), "Content-Length"},
    {"SignedLength", post("Content-Length: +3\r\n", "abc"), "Content-Length"},
    {"NegativeLength", post("Content-Length: -3\r\n", "abc"), "Content-Length"},
    {"HexLength", post("Content-Length: 0x3\r\n", "abc"), "Content-Length"},
    {"EmptyLength", post("Content-Length:\r\n"), "Content-Length"},
    {"LengthWithInnerSpace", post("Content-Length: 1 2\r\n", "abc"), "Content-Length"},
    {"OverflowingLength", post("Content-Length: 18446744073709551617\r\n"), "Content-Length"},
    {"Gzip", post("Transfer-Encoding: gzip\r\n"), "chunked"},
    {"GzipChunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "chunked"},
    {"ChunkedGzip", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), "Transfer-Encoding"},
    {"ChunkedTwice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"TwoTransferEncodings",
     post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"ChunkedThenIdentity",
     post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"ChunkedThenEmpty", post("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"IdentityThenChunked",
     post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"ObfuscatedChunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), "chunked"},
    {"QuotedChunked", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), "chunked"},
    {"EmptyTransferEncoding", post("Transfer-Encoding:\r\n"), "chunked"},
    {"ChunkedParameter", post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"),
     "Transfer-Encoding"},
    {"ChunkedInHttp10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.0"},
    {"ChunkLineBareLf", post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"),
     "LF without CR"},
    {"ChunkLineBareCr", post("Transfer-Encoding: chunked\r\n", "3\rabc\r\n0\r\n\r\n"),
     "CR without LF"},
    {"ChunkDataBareLf", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\n0\r\n\r\n"), "CRLF"},
    {"ChunkDataCrOnly", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\rx0\r\n\r\n"), "CRLF"},
    {"ChunkTooShort", post("Transfer-Encoding: chunked\r\n", "2\r\nabc\r\n0\r\n\r\n"), "CRLF"},
    {"ChunkSizeEmpty", post("Transfer-Encoding: chunked\r\n", "\r\n\r\n"), "hex digit"},
    {"ChunkSizeSigned", post("Transfer-Encoding: chunked\r\n", "+3\r\nabc\r\n0\r\n\r\n"),
     "hex digit"},
    {"ChunkSizePrefixed", post("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"),
     "invalid character"},
    {"ChunkSizeSpace", post("Transfer-Encoding: chunked\r\n", "3 \r\nabc\r\n0\r\n\r\n"),
     "invalid character"},
    {"ChunkSizeHuge", post("Transfer-Encoding: chunked\r\n", "10000000000000003\r\nabc\r\n"),
     "too large"},
    {"ExtensionBareLf", post("Transfer-Encoding: chunked\r\n", "3;a\nabc\r\n0\r\n\r\n"),
     "LF without CR"},
    {"ExtensionControl", post("Transfer-Encoding: chunked\r\n", "3;\x02\r\nabc\r\n0\r\n\r\n"),
     "control byte"},
    {"ExtensionTooLong",
     post("Transfer-Encoding: chunked\r\n", "3;" + std::string(256, 'x') + "\r\nabc\r\n0\r\n\r\n"),
     "extension too long"},
    {"TrailerBareLf", post("Transfer-Encoding: chunked\r\n", "0\r\nX: a\n\r\n"), "LF without CR"},
    {"TrailerFolded", post("Transfer-Encoding: chunked\r\n", "0\r\n X: a\r\n\r\n"), "white space"},
};

INSTANTIATE_TEST_SUITE_P(Smuggling, RefusedRequest, testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RequestParser, ReadsAGetAndItsHeaders) {
  RequestParser parser(kLimits);
  const std::string_view bytes =
      "GET /v1/models?x=1 HTTP/1.1\r\nHost: a:80\r\nX-Empty:\r\nX-Pad: \t b\tc \t\r\n\r\n";
  EXPECT_TRUE(parser.idle());
  const auto first = parser.feed(bytes);
  EXPECT_EQ(first.status, ParseStatus::HeadDone);
  EXPECT_EQ(first.consumed, bytes.size());
  EXPECT_FALSE(parser.idle());
  const auto& head = parser.head();
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/v1/models?x=1");
  EXPECT_EQ(head.path(), "/v1/models");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.chunked);
  EXPECT_FALSE(head.content_length);
  EXPECT_FALSE(head.expect_continue);
  ASSERT_EQ(head.headers.size(), 3U);
  EXPECT_EQ(head.headers[0].name, "Host");
  EXPECT_EQ(head.headers[0].value, "a:80");
  EXPECT_EQ(head.headers[1].value, "");
  EXPECT_EQ(head.headers[2].value, "b\tc");
  const auto second = parser.feed("");
  EXPECT_EQ(second.status, ParseStatus::Done);
  EXPECT_EQ(second.consumed, 0U);
  EXPECT_EQ(parser.feed("GET").status, ParseStatus::Done);  // until next() is called
  EXPECT_EQ(parser.feed("GET").consumed, 0U);
}

TEST(RequestParser, RefusesEveryControlByteAtEveryPlaceInALine) {
  for (int c = 0; c < 256; ++c) {
    const bool allowed = (c >= 0x20 && c != 0x7f) || c == '\t';
    for (std::size_t at = 0; at < 20; ++at) {
      std::string value(20, '\xe9');
      value[at] = static_cast<char>(c);
      const auto outcome = run_whole(post("X: a" + value + "z\r\n"));
      EXPECT_EQ(outcome.requests.size(), allowed ? 1U : 0U) << "byte " << c << " at " << at;
    }
  }
}

TEST(RequestParser, TellsKeepAliveFromVersionAndConnection) {
  const auto keep_alive = [](std::string_view version, std::string_view field) {
    RequestParser parser(kLimits);
    const std::string bytes =
        std::string("GET / ").append(version).append("\r\nHost: a\r\n").append(field) + "\r\n";
    EXPECT_EQ(parser.feed(bytes).status, ParseStatus::HeadDone);
    return parser.head().keep_alive;
  };
  EXPECT_TRUE(keep_alive("HTTP/1.1", ""));
  EXPECT_TRUE(keep_alive("HTTP/1.1", "Connection: Upgrade\r\n"));
  EXPECT_FALSE(keep_alive("HTTP/1.1", "Connection: x, Close\r\n"));
  EXPECT_FALSE(keep_alive("HTTP/1.0", ""));
  EXPECT_TRUE(keep_alive("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(RequestParser, SeesExpectContinueOnlyInHttp11) {
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.feed(post("Expect: 100-Continue\r\nContent-Length: 1\r\n")).status,
            ParseStatus::HeadDone);
  EXPECT_TRUE(parser.head().expect_continue);
  parser.next();
  EXPECT_EQ(parser.feed("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").status,
            ParseStatus::HeadDone);
  EXPECT_FALSE(parser.head().expect_continue);
}

TEST(RequestParser, AcceptsHttp10WithoutHost) {
  EXPECT_EQ(run_whole("GET / HTTP/1.0\r\n\r\n").requests, std::vector<std::string>{"GET /|"});
}

TEST(RequestParser, ReducesAbsoluteTargetsToTheirPath) {
  const auto target = [](std::string_view sent) {
    RequestParser parser(kLimits);
    parser.feed(std::string("GET ").append(sent).append(" HTTP/1.1\r\nHost: a\r\n\r\n"));
    return parser.head().target;
  };
  EXPECT_EQ(target("http://a.b:80/c?d"), "/c?d");
  EXPECT_EQ(target("HTTPS://a/"), "/");
  EXPECT_EQ(target("http://a"), "/");
  EXPECT_EQ(target("http://a?b"), "/?b");
}

TEST(RequestParser, TakesConnectUpgradeAndOptionsAsOrdinaryRequests) {
  const auto outcome = run_whole(
      "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
      "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(outcome.requests,
            (std::vector<std::string>{"CONNECT a:443|Host=a|", "OPTIONS *|Host=a|",
                                      "GET /ws|Host=a|Connection=Upgrade|Upgrade=websocket|",
                                      "GET /next|Host=a|"}));
}

TEST(RequestParser, ReadsPipelinedRequestsAlikeHoweverTheyAreCut) {
  const std::string bytes =
      "\r\nPOST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
      "\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3\r\nfoo\r\n00A;ext=\"v\"\r\n0123456789\r\n0\r\nTrailer: dropped\r\n\r\n"
      "GET /c HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /d";
  const auto whole = run_whole(bytes);
  EXPECT_EQ(whole.requests,
            (std::vector<std::string>{"POST /a|Host=a|Content-Length=5|hello",
                                      "POST /b|Host=a|Transfer-Encoding=Chunked|foo0123456789",
                                      "GET /c|Host=a|"}));
  EXPECT_EQ(whole.end, "unfinished");
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    EXPECT_EQ(parse_requests(bytes, step), whole) << "in pieces of " << step;
  }
}

TEST(RequestParser, LeavesTheNextRequestUntouched) {
  RequestParser parser(kLimits);
  const std::string bytes = post("Content-Length: 2\r\n", "abGET /");
  const auto first = parser.feed(bytes);
  ASSERT_EQ(first.status, ParseStatus::HeadDone);
  EXPECT_EQ(bytes.substr(first.consumed), "abGET /");
  const auto second = parser.feed(std::string_view(bytes).substr(first.consumed));
  EXPECT_EQ(second.status, ParseStatus::Done);
  EXPECT_EQ(second.consumed, 2U);
  EXPECT_EQ(parser.body(), "ab");
}

TEST(RequestParser, StaysIdleOverBlankLines) {
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.feed("\r\n\r").status, ParseStatus::NeedMore);
  EXPECT_TRUE(parser.idle());
  EXPECT_EQ(parser.feed("\nG").status, ParseStatus::NeedMore);
  EXPECT_FALSE(parser.idle());
}

TEST(RequestParser, LimitsTheHeadToTheByte) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(50, 'x') + "\r\n\r\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, head.size()}) {
    const HttpLimits fits{.header_bytes = head.size(), .body_bytes = 0};
    EXPECT_EQ(parse_requests(head, step, fits).requests.size(), 1U);
    const HttpLimits tight{.header_bytes = head.size() - 1, .body_bytes = 0};
    EXPECT_THAT(parse_requests(head, step, tight).end, HasSubstr("headers_too_large: "));
  }
}

TEST(RequestParser, SaysWhichLimitAHeadRanInto) {
  RequestParser parser(HttpLimits{.header_bytes = 100, .body_bytes = 0});
  EXPECT_EQ(parser.feed("GET /" + std::string(200, 'a')).status, ParseStatus::Failed);
  EXPECT_EQ(parser.error().limit(), Limit::HeaderBytes);
}

TEST(RequestParser, LimitsTheFieldsOfAHead) {
  const HttpLimits limits{.header_bytes = 64 * 1024, .body_bytes = 0};
  std::string fields = "X: 1\r\n";
  for (int i = 0; i < 510; ++i) fields += "a:\r\n";
  EXPECT_EQ(parse_requests(post(fields), 4096, limits).requests.size(), 1U);
  RequestParser parser(limits);
  EXPECT_EQ(parser.feed(post(fields + "a:\r\n")).status, ParseStatus::Failed);
  EXPECT_EQ(parser.error().code(), Errc::HeadersTooLarge);
  EXPECT_EQ(parser.error().limit(), Limit::HeaderBytes);
}

TEST(RequestParser, LimitsWhatAHeadTiesToItsConnection) {
  const HttpLimits limits{.header_bytes = 64 * 1024, .body_bytes = 0};
  const std::string half = "Connection: " + std::string(512, 'a') + "\r\n";
  EXPECT_EQ(parse_requests(post(half + half), 4096, limits).requests.size(), 1U);
  EXPECT_THAT(parse_requests(post(half + half + "Connection: b\r\n"), 4096, limits).end,
              HasSubstr("headers_too_large: "));
}

TEST(RequestParser, LimitsAHeadThatNeverEnds) {
  EXPECT_THAT(parse_requests("GET /" + std::string(5000, 'a'), 100).end,
              HasSubstr("headers_too_large: "));
  std::string blank;
  for (int i = 0; i < 3000; ++i) blank += "\r\n";
  EXPECT_THAT(parse_requests(blank, 100).end, HasSubstr("headers_too_large: "));
}

TEST(RequestParser, RefusesALengthOverTheLimitBeforeAnyBody) {
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.feed(post("Content-Length: 1001\r\n")).status, ParseStatus::Failed);
  EXPECT_EQ(parser.error().code(), Errc::PayloadTooLarge);
  EXPECT_EQ(parser.error().limit(), Limit::BodyBytes);
  EXPECT_THAT(parser.error().message(), HasSubstr("1000 bytes"));
  EXPECT_EQ(parser.feed("x").status, ParseStatus::Failed);
}

TEST(RequestParser, LimitsAChunkedBodyToTheByte) {
  const std::string half = "1f4\r\n" + std::string(500, 'x') + "\r\n";
  const std::string field = "Transfer-Encoding: chunked\r\n";
  const auto fits = run_whole(post(field, half + half + "0\r\n\r\n"));
  ASSERT_EQ(fits.requests.size(), 1U);
  EXPECT_THAT(fits.requests[0], HasSubstr(std::string(1000, 'x')));
  for (const std::size_t step : {1U, 13U, 5000U}) {
    EXPECT_THAT(parse_requests(post(field, half + half + "1\r\nx\r\n0\r\n\r\n"), step).end,
                HasSubstr("payload_too_large: "));
  }
}

TEST(RequestParser, LimitsTrailers) {
  std::string trailers;
  for (int i = 0; i < 1000; ++i) trailers += "X: 123456\r\n";
  const auto outcome =
      run_whole(post("Transfer-Encoding: chunked\r\n", "0\r\n" + trailers + "\r\n"));
  EXPECT_THAT(outcome.end, HasSubstr("trailers too long"));
}

TEST(RequestParser, AcceptsAnExtensionOfTheLargestSize) {
  const std::string extension = ";" + std::string(255, 'x');
  const auto outcome =
      run_whole(post("Transfer-Encoding: chunked\r\n",
                     "1" + extension + "\r\na\r\n1" + extension + "\r\nb\r\n0\r\n\r\n"));
  ASSERT_EQ(outcome.requests.size(), 1U) << outcome.end;
  EXPECT_TRUE(outcome.requests[0].ends_with("|ab"));
}

TEST(RequestParser, DoesNotReserveWhatAHeaderMerelyClaims) {
  RequestParser parser({.header_bytes = 4096, .body_bytes = std::size_t{1} << 40});
  EXPECT_EQ(parser.feed(post("Content-Length: 1000000000000\r\n")).status, ParseStatus::HeadDone);
  EXPECT_LE(parser.body().capacity(), 2U * 1024 * 1024);
}

TEST(RequestParser, ReservesInProportionToWhatCame) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  RequestParser parser({.header_bytes = 4096, .body_bytes = std::size_t{1} << 40});
  EXPECT_EQ(parser.feed(post("Content-Length: 1000000000000\r\n")).status, ParseStatus::HeadDone);
  const std::string part(kMiB, 'x');
  std::size_t moves = 0;
  for (int i = 0; i < 40; ++i) {
    const char* const before = parser.body().data();
    EXPECT_EQ(parser.feed(part).status, ParseStatus::NeedMore);
    if (parser.body().data() != before) ++moves;
    EXPECT_LE(parser.body().capacity(), 17 * parser.body().size() + 2 * kMiB);
  }
  EXPECT_LE(moves, 3U) << "a long body is not copied again and again";
}

TEST(RequestParser, GivesMemoryBackBetweenRequests) {
  RequestParser parser({.header_bytes = 4096, .body_bytes = 1 << 20});
  const std::string bytes = post("Content-Length: 500000\r\n", std::string(500000, 'x'));
  const auto first = parser.feed(bytes);
  EXPECT_EQ(parser.feed(std::string_view(bytes).substr(first.consumed)).status, ParseStatus::Done);
  EXPECT_EQ(parser.body().size(), 500000U);
  parser.next();
  EXPECT_LT(parser.body().capacity(), 100U);
  EXPECT_TRUE(parser.head().headers.empty());
}

TEST(RequestParser, CanBeMovedInTheMiddleOfARequest) {
  RequestParser parser(kLimits);
  const std::string bytes = post("Content-Length: 2\r\n", "ab");
  parser.feed(std::string_view(bytes).substr(0, 10));
  RequestParser moved = std::move(parser);
  const auto progress = moved.feed(std::string_view(bytes).substr(10));
  EXPECT_EQ(progress.status, ParseStatus::HeadDone);
  EXPECT_EQ(moved.feed("ab").status, ParseStatus::Done);
  EXPECT_EQ(moved.body(), "ab");
}

}  // namespace
}  // namespace baton::wire
