// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/http_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::wire {
namespace {

using testing::HasSubstr;

constexpr std::size_t kHeaderBytes = 1024;

struct ResponseOutcome {
  int status = 0;
  std::string body;
  std::string end;   // "done", "failed: why"
  std::string rest;  // what was not consumed
  bool operator==(const ResponseOutcome&) const = default;
};

// One response out of `bytes`, fed in pieces of `step`; the peer closes at the end.
ResponseOutcome parse_response(std::string_view bytes, std::size_t step) {
  ResponseParser parser(kHeaderBytes);
  ResponseOutcome outcome;
  ParseStatus status = ParseStatus::NeedMore;
  while (!bytes.empty() && (status == ParseStatus::NeedMore || status == ParseStatus::HeadDone)) {
    std::string buffer(bytes.substr(0, step));
    const auto progress = parser.feed(buffer);
    EXPECT_TRUE(progress.status != ParseStatus::NeedMore || progress.consumed == buffer.size());
    EXPECT_TRUE(progress.status != ParseStatus::HeadDone || progress.body.empty());
    outcome.body += progress.body;
    bytes.remove_prefix(progress.consumed);
    status = progress.status;
  }
  if (status == ParseStatus::HeadDone || status == ParseStatus::NeedMore) status = parser.finish();
  if (parser.head_done()) outcome.status = parser.head().status;
  if (status == ParseStatus::Failed) {
    EXPECT_EQ(parser.error().code(), Errc::EngineProtocol);
    outcome.end = "failed: " + parser.error().message();
  } else {
    outcome.end = "done";
    outcome.rest = bytes;
  }
  return outcome;
}

// The outcome, which must not depend on how the bytes were cut.
ResponseOutcome parse_response(std::string_view bytes) {
  const auto whole = parse_response(bytes, bytes.size());
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    EXPECT_EQ(parse_response(bytes, step), whole) << "in pieces of " << step;
  }
  return whole;
}

TEST(ResponseParser, ReadsABodyByLength) {
  const auto outcome = parse_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1");
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.body, "hello");
  EXPECT_EQ(outcome.end, "done");
  EXPECT_EQ(outcome.rest, "HTTP/1.1");
}

TEST(ResponseParser, ReadsAChunkedBody) {
  const auto outcome = parse_response(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\nX-Trailer: 1\r\n\r\nmore");
  EXPECT_EQ(outcome.body, "hello world");
  EXPECT_EQ(outcome.end, "done");
  EXPECT_EQ(outcome.rest, "more");
}

TEST(ResponseParser, ReadsABodyUntilTheConnectionCloses) {
  const auto outcome = parse_response("HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nall of it");
  EXPECT_EQ(outcome.body, "all of it");
  EXPECT_EQ(outcome.end, "done");
}

TEST(ResponseParser, SqueezesChunksInPlaceWithoutCopies) {
  ResponseParser parser(kHeaderBytes);
  std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_EQ(parser.feed(head).status, ParseStatus::HeadDone);
  std::string buffer = "3\r\nabc\r\n4\r\ndefg\r\n2\r\nh";
  const auto progress = parser.feed(buffer);
  EXPECT_EQ(progress.status, ParseStatus::NeedMore);
  EXPECT_EQ(progress.consumed, buffer.size());
  EXPECT_EQ(progress.body, "abcdefgh");
  EXPECT_EQ(progress.body.data(), buffer.data() + 3);  // where the first run already was
  std::string last = "i\r\n0\r\n\r\n";
  const auto end = parser.feed(last);
  EXPECT_EQ(end.status, ParseStatus::Done);  // together with body
  EXPECT_EQ(end.body, "i");
}

TEST(ResponseParser, SkipsInterimAnswers) {
  const auto outcome = parse_response(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
      "HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_EQ(outcome.status, 429);
  EXPECT_EQ(outcome.body, "no");
  EXPECT_EQ(outcome.end, "done");
}

TEST(ResponseParser, GivesNoBodyTo204And304) {
  for (const std::string status : {"204", "304"}) {
    const auto outcome =
        parse_response("HTTP/1.1 " + status + " x\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK");
    EXPECT_EQ(outcome.body, "");
    EXPECT_EQ(outcome.end, "done");
    EXPECT_EQ(outcome.rest, "HTTP/1.1 200 OK");
  }
}

TEST(ResponseParser, AcceptsAnEmptyReason) {
  EXPECT_EQ(parse_response("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").end, "done");
  EXPECT_EQ(parse_response("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n").end, "done");
}

TEST(ResponseParser, IsReusedForTheNextAnswer) {
  ResponseParser parser(kHeaderBytes);
  std::string bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: 1\r\n\r\n";
  EXPECT_FALSE(parser.head_done());
  ASSERT_EQ(parser.feed(bytes).status, ParseStatus::HeadDone);
  EXPECT_TRUE(parser.head_done());
  EXPECT_EQ(parser.head().headers.find("x"), "1");
  EXPECT_EQ(parser.head().content_length, 0U);
  EXPECT_TRUE(parser.head().keep_alive);
  EXPECT_EQ(parser.feed({}).status, ParseStatus::Done);
  parser.next();
  EXPECT_FALSE(parser.head_done());
  std::string second = "HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 1\r\n\r\n";
  ASSERT_EQ(parser.feed(second).status, ParseStatus::HeadDone);
  EXPECT_EQ(parser.head().status, 500);
  EXPECT_FALSE(parser.head().keep_alive);
  EXPECT_FALSE(parser.head().headers.find("x"));
}

TEST(ResponseParser, DoesNotKeepAConnectionWhoseAnswerEndsByClose) {
  ResponseParser parser(kHeaderBytes);
  std::string bytes = "HTTP/1.1 200 OK\r\n\r\n";
  ASSERT_EQ(parser.feed(bytes).status, ParseStatus::HeadDone);
  EXPECT_FALSE(parser.head().keep_alive);
}

struct MalformedAnswer {
  const char* bytes;
  const char* problem;
};

TEST(ResponseParser, RefusesMalformedAnswers) {
  const MalformedAnswer cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       "Content-Length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
       "Content-Length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "Content-Length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "chunked"},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "hex digit"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "CRLF"},
      {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "LF without CR"},
      {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "folded"},
      {"HTTP/2.0 200 OK\r\n\r\n", "version"},
      {"ICY 200 OK\r\nX: y\r\n\r\n", "version"},
      {"HTTP/1.1 999 X\r\n\r\n", "status"},
      {"HTTP/1.1 20 X\r\n\r\n", "malformed HTTP head"},
      {"HTTP/1.1 101 Switching\r\n\r\n", "switched"},
      {"SSH-2.0-OpenSSH\r\n\r\n", "version"},
  };
  for (const auto& [bytes, problem] : cases) {
    EXPECT_THAT(parse_response(bytes).end, HasSubstr(problem)) << bytes;
    EXPECT_THAT(parse_response(bytes).end, HasSubstr("failed: ")) << bytes;
  }
}

TEST(ResponseParser, HandsOutWhatCameBeforeAFault) {
  const auto outcome =
      parse_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\ncX");
  EXPECT_EQ(outcome.body, "abc");
  EXPECT_THAT(outcome.end, HasSubstr("failed: "));
}

TEST(ResponseParser, ReportsAnAnswerThatWasCutOff) {
  EXPECT_THAT(parse_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell").end,
              HasSubstr("inside"));
  EXPECT_THAT(
      parse_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n").end,
      HasSubstr("inside its answer"));
  EXPECT_THAT(parse_response("HTTP/1.1 200 OK\r\nContent").end, HasSubstr("head"));
  EXPECT_THAT(parse_response("HTTP/1.1 100 Continue\r\n\r\n").end, HasSubstr("without an answer"));
  ResponseParser parser(kHeaderBytes);
  EXPECT_EQ(parser.finish(), ParseStatus::Failed);
  EXPECT_THAT(parser.error().message(), HasSubstr("without an answer"));
  EXPECT_EQ(parser.finish(), ParseStatus::Failed);
  EXPECT_EQ(parser.feed({}).status, ParseStatus::Failed);
}

TEST(ResponseParser, LimitsTheHead) {
  const auto outcome =
      parse_response("HTTP/1.1 200 OK\r\nX: " + std::string(kHeaderBytes, 'x') + "\r\n\r\n", 100);
  EXPECT_THAT(outcome.end, HasSubstr("1024 bytes"));
  ResponseParser parser(kHeaderBytes);
  std::string head = "HTTP/1.1 200 OK\r\nX: " + std::string(kHeaderBytes, 'x');
  EXPECT_EQ(parser.feed(head).status, ParseStatus::Failed);
  EXPECT_EQ(parser.error().limit(), Limit::HeaderBytes);
}

}  // namespace
}  // namespace baton::wire
