// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/traffic.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <ctime>
#include <iterator>
#include <system_error>

namespace baton::bench {
namespace {

constexpr std::size_t kStampDigits = 19;
constexpr std::size_t kSequenceDigits = 6;

constexpr std::string_view kEventStart = R"(data: {"id":"chatcmpl-)";
constexpr std::string_view kEventMiddle =
    R"(","object":"chat.completion.chunk","created":1700000000,"model":"bench",)"
    R"("choices":[{"index":0,"delta":{)";
constexpr std::string_view kContentStart = R"("content":" )";
constexpr std::string_view kEventEnd = R"(},"logprobs":null,"finish_reason":null}]})"
                                       "\n\n";
constexpr std::string_view kLastEventEnd =
    R"(},"logprobs":null,"finish_reason":"length","stop_reason":null}]})"
    "\n\n";

constexpr std::size_t kStampOffset =
    kEventStart.size() + kRequestIdLength + kEventMiddle.size() + kContentStart.size();

constexpr std::string_view kAnswerMiddle =
    R"(","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,)"
    R"("message":{"role":"assistant","content":")";
constexpr std::string_view kAnswerText =
    "The quick brown fox jumps over the lazy dog, and then it does so once more because the first "
    "time nobody looked, which is how short answers come to be.";
constexpr std::string_view kAnswerEnd =
    R"(","refusal":null,"tool_calls":[]},"logprobs":null,"finish_reason":"length",)"
    R"("stop_reason":null}],"usage":{"prompt_tokens":400,"total_tokens":432,)"
    R"("completion_tokens":32}})";

// Fixed width, so that the place of everything behind it is known.
void append_digits(std::string& out, std::uint64_t value, std::size_t width) {
  std::array<char, 20> digits;
  for (std::size_t i = width; i > 0; --i) {
    digits[i - 1] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(digits.data(), width);
}

// What follows `"key":` in the body, blanks skipped; empty if there is no such key.
std::string_view value_of(std::string_view body, std::string_view quoted_key) {
  const auto at = body.find(quoted_key);
  if (at == std::string_view::npos) return {};
  const auto start = body.find_first_not_of(" :", at + quoted_key.size());
  return start == std::string_view::npos ? std::string_view{} : body.substr(start);
}

template <class Number>
Number number_of(std::string_view body, std::string_view quoted_key, Number fallback) {
  const std::string_view text = value_of(body, quoted_key);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? value : fallback;
}

}  // namespace

void append_post(std::string& out, const Request& request, std::size_t body_bytes) {
  std::string body = fmt::format(
      R"({{"model":"{}","request_id":"{}","stream":{},"max_tokens":{},"interval_us":{},)"
      R"("temperature":0.7,"messages":[{{"role":"user","content":")",
      kModel, request.id, request.stream, request.events, request.interval_us);
  constexpr std::string_view kBodyEnd = R"("}]})";
  constexpr std::string_view kPrompt = "Tell me of the sea and of the ships that sail on it. ";
  while (body.size() + kBodyEnd.size() < body_bytes) {
    body += kPrompt.substr(0, body_bytes - body.size() - kBodyEnd.size());
  }
  body += kBodyEnd;
  fmt::format_to(std::back_inserter(out),
                 "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "Content-Type: application/json\r\nAccept: application/json\r\n"
                 "Authorization: Bearer none\r\nUser-Agent: baton-bench\r\n"
                 "Content-Length: {}\r\n\r\n{}",
                 body.size(), body);
}

std::optional<Request> parse_body(std::string_view body) {
  const std::string_view id = value_of(body, R"("request_id")");
  if (id.size() < kRequestIdLength + 2 || id.front() != '"' || id[kRequestIdLength + 1] != '"') {
    return std::nullopt;
  }
  Request request;
  request.id = id.substr(1, kRequestIdLength);
  request.stream = value_of(body, R"("stream")").starts_with("true");
  request.events = number_of<std::uint32_t>(body, R"("max_tokens")", 16);
  request.interval_us = number_of<std::uint64_t>(body, R"("interval_us")", 0);
  const std::string_view hand_off = value_of(body, R"("kv_transfer_params")");
  if (hand_off.empty()) return request;
  if (value_of(hand_off, R"("do_remote_decode")").starts_with("true")) {
    request.leg = Leg::Prefill;
    return request;
  }
  if (!value_of(hand_off, R"("remote_request_id")")
           .starts_with(fmt::format(R"("chatcmpl-{}")", request.id))) {
    return std::nullopt;
  }
  request.leg = Leg::Decode;
  return request;
}

void append_role_event(std::string& out, std::string_view id) {
  out += kEventStart;
  out += id;
  out += kEventMiddle;
  out += R"("role":"assistant","content":"")";
  out += kEventEnd;
}

void append_content_event(std::string& out, std::string_view id, std::uint32_t sequence,
                          std::uint64_t stamp_ns, Last last) {
  out += kEventStart;
  out += id;
  out += kEventMiddle;
  out += kContentStart;
  append_digits(out, stamp_ns, kStampDigits);
  out += ' ';
  append_digits(out, sequence, kSequenceDigits);
  out += '"';
  out += last == Last::Yes ? kLastEventEnd : kEventEnd;
}

std::optional<std::uint64_t> find_stamp(std::string_view event) {
  if (event.size() < kStampOffset + kStampDigits) return std::nullopt;
  const char* first = event.data() + kStampOffset;
  std::uint64_t stamp_ns = 0;
  const auto [end, error] = std::from_chars(first, first + kStampDigits, stamp_ns);
  if (error != std::errc{} || end != first + kStampDigits) return std::nullopt;
  return stamp_ns;
}

void append_answer(std::string& out, std::string_view id) {
  out += R"({"id":"chatcmpl-)";
  out += id;
  out += kAnswerMiddle;
  out += kAnswerText;
  out += kAnswerEnd;
}

void append_prefill_answer(std::string& out, std::string_view id) {
  append_answer(out, id);
  out.pop_back();  // the closing brace, to add a field
  fmt::format_to(std::back_inserter(out),
                 R"(,"kv_transfer_params":{{"do_remote_prefill":true,"do_remote_decode":false,)"
                 R"("remote_block_ids":[[1,2,3,4,5,6,7,8]],"remote_engine_id":"bench-prefill",)"
                 R"("remote_request_id":"chatcmpl-{}","remote_host":"127.0.0.1",)"
                 R"("remote_port":5600,"tp_size":1}}}})",
                 id);
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace baton::bench
