// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/traffic.h"

#include "proxy/answer_check.h"
#include "proxy/response_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::bench {
namespace {

constexpr std::uint64_t kReadNs = 5'000'000;
constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

Request streamed(std::uint32_t events) {
  return {.id = std::string(kRequestIdLength, 'a'), .stream = true, .events = events};
}

// The events of a right answer to `request`, [DONE] included. Event i is stamped i microseconds
// before it is read.
std::vector<std::string> right_events(const Request& request) {
  std::vector<std::string> events(1);
  append_role_event(events.back(), request.id);
  for (std::uint32_t i = 0; i < request.events; ++i) {
    append_content_event(events.emplace_back(), request.id, i, kReadNs - i * 1000,
                         i + 1 == request.events ? Last::Yes : Last::No);
  }
  events.emplace_back(kDoneEvent);
  return events;
}

std::string chunked(const std::vector<std::string>& events) {
  std::string bytes(kChunkedHead);
  for (const std::string& event : events) {
    bytes += fmt::format("{:x}\r\n{}\r\n", event.size(), event);
  }
  return bytes + "0\r\n\r\n";
}

struct Outcome {
  std::string wrong;  // empty: nothing
  bool complete = false;
  std::vector<std::uint32_t> ages_ns;
};

// Reads an answer as the load generator does, `step` bytes at a time.
Outcome read_answer(const Request& request, std::string_view bytes, std::size_t step) {
  ResponseReader reader;
  AnswerCheck check(request);
  std::string body;
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const char* wrong = reader.feed(bytes.substr(at, step), body);
    if (wrong == nullptr && request.stream) {
      wrong = check.take_events(body, kReadNs, outcome.ages_ns);
    }
    if (wrong == nullptr && reader.complete()) wrong = check.finish(body);
    if (wrong != nullptr) {
      outcome.wrong = wrong;
      return outcome;
    }
  }
  outcome.complete = reader.complete();
  return outcome;
}

TEST(Traffic, ARequestIsReadBackAsItWasMade) {
  Request request = streamed(100);
  request.interval_us = 20'000;
  std::string post;
  append_post(post, request, 2048);
  const std::string body = post.substr(post.find("\r\n\r\n") + 4);
  EXPECT_EQ(body.size(), 2048U);
  const std::optional<Request> read = parse_body(body);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, request.id);
  EXPECT_TRUE(read->stream);
  EXPECT_EQ(read->leg, Leg::Whole);
  EXPECT_EQ(read->events, 100U);
  EXPECT_EQ(read->interval_us, 20'000U);
}

TEST(Traffic, APrefillLegIsToldByItsFlag) {
  const std::optional<Request> request = parse_body(
      fmt::format(R"({{"request_id":"{}","kv_transfer_params": {{"do_remote_decode": true}}}})",
                  std::string(kRequestIdLength, 'a')));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->leg, Leg::Prefill);
}

TEST(Traffic, ADecodeLegMustCarryThePrefillAnswerToTheSameRequest) {
  const auto decode_leg = [](const std::string& id, const std::string& prefilled_id) {
    std::string answer;
    append_prefill_answer(answer, prefilled_id);
    const std::string key = R"("kv_transfer_params":)";
    const std::size_t start = answer.find(key) + key.size();
    return fmt::format(R"({{"request_id":"{}",{}{}}})", id, key,
                       answer.substr(start, answer.size() - 1 - start));
  };
  const std::string id(kRequestIdLength, 'a');
  const std::optional<Request> request = parse_body(decode_leg(id, id));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->leg, Leg::Decode);
  EXPECT_FALSE(parse_body(decode_leg(id, std::string(kRequestIdLength, 'b'))));
}

TEST(Traffic, ABodyWithoutARequestIdIsRefused) {
  EXPECT_FALSE(parse_body(R"({"model":"bench"})"));
  EXPECT_FALSE(parse_body(R"({"request_id":"short"})"));
}

TEST(Traffic, ARightStreamPassesHoweverItIsCut) {
  const Request request = streamed(3);
  const std::string bytes = chunked(right_events(request));
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Outcome outcome = read_answer(request, bytes, step);
    ASSERT_EQ(outcome.wrong, "") << "step " << step;
    ASSERT_TRUE(outcome.complete) << "step " << step;
    ASSERT_EQ(outcome.ages_ns, (std::vector<std::uint32_t>{0, 1000, 2000})) << "step " << step;
  }
}

TEST(Traffic, AMissingEventIsNoticed) {
  const Request request = streamed(3);
  for (std::size_t missing = 0; missing < 5; ++missing) {
    std::vector<std::string> events = right_events(request);
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_NE(read_answer(request, chunked(events), 100).wrong, "") << "without event " << missing;
  }
}

TEST(Traffic, ARepeatedEventIsNoticed) {
  const Request request = streamed(3);
  for (std::size_t repeated = 0; repeated < 5; ++repeated) {
    std::vector<std::string> events = right_events(request);
    const std::string event = events[repeated];
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(repeated), event);
    EXPECT_NE(read_answer(request, chunked(events), 100).wrong, "") << "event twice: " << repeated;
  }
}

TEST(Traffic, AnyChangedByteOfAStreamIsNoticedButThoseOfTheStamp) {
  const Request request = streamed(1);
  const std::vector<std::string> right = right_events(request);
  for (std::size_t event = 0; event < right.size(); ++event) {
    const std::size_t stamp = right[event].find(" 00000");
    for (std::size_t at = 0; at < right[event].size(); ++at) {
      if (stamp != std::string::npos && at > stamp && at <= stamp + 19) continue;
      std::vector<std::string> events = right;
      events[event][at] = '#';
      const Outcome outcome = read_answer(request, chunked(events), 4096);
      EXPECT_NE(outcome.wrong, "") << "event " << event << ", byte " << at;
    }
  }
}

TEST(Traffic, AStreamThatIsCutOffIsNeverComplete) {
  const Request request = streamed(2);
  const std::string bytes = chunked(right_events(request));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(read_answer(request, bytes.substr(0, length), 4096).complete) << length;
  }
}

TEST(Traffic, TheAnswerToAnotherRequestIsNoticed) {
  const Request request = streamed(2);
  Request other = request;
  other.id.back() = 'b';
  EXPECT_NE(read_answer(request, chunked(right_events(other)), 4096).wrong, "");

  Request short_answer = request;
  short_answer.stream = false;
  std::string body;
  append_answer(body, other.id);
  const std::string bytes =
      fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", body.size(), body);
  EXPECT_NE(read_answer(short_answer, bytes, 4096).wrong, "");
}

TEST(Traffic, AShortAnswerPassesWithALengthAndInChunks) {
  Request request = streamed(1);
  request.stream = false;
  std::string body;
  append_answer(body, request.id);
  const std::string with_length =
      fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  for (const std::string& bytes : {with_length, chunked({body})}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      const Outcome outcome = read_answer(request, bytes, step);
      EXPECT_EQ(outcome.wrong, "");
      EXPECT_TRUE(outcome.complete);
    }
  }
}

TEST(Traffic, AnswersThatAreNotAFramed200AreRefused) {
  const Request request = streamed(1);
  for (const std::string_view bytes :
       {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore"}) {
    EXPECT_NE(read_answer(request, bytes, 4096).wrong, "") << bytes;
  }
}

}  // namespace
}  // namespace baton::bench
