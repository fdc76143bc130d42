// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The bytes of the benchmark's requests and answers. Backend and load generator both make answers
// from here, one to send and one to compare, so that every byte a proxy hands on is checked.
// Shapes are those of vLLM's chat completions.
namespace baton::bench {

inline constexpr std::string_view kModel = "bench";
inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";
inline constexpr std::size_t kRequestIdLength = 32;

// Which part of the work is asked for: all of it, or one leg of a vLLM hand-off.
enum class Leg { Whole, Prefill, Decode };

// What a request asks of the backend, all of it carried in the request's own body.
struct Request {
  std::string id;  // kRequestIdLength characters; part of every event of the answer
  bool stream = false;
  Leg leg = Leg::Whole;
  std::uint32_t events = 1;       // content events of a stream
  std::uint64_t interval_us = 0;  // between two of them
};

// A whole POST with a body of `body_bytes` (or what the fields need, if that is more).
void append_post(std::string& out, const Request& request, std::size_t body_bytes);

// Reads the body of append_post, also after a proxy changed or added fields.
// Nothing if it has no id of the right length, or if its hand-off is that of another request.
std::optional<Request> parse_body(std::string_view body);

// The first event of a stream.
void append_role_event(std::string& out, std::string_view id);

enum class Last { No, Yes };

// Event `sequence` (from 0). `stamp_ns` is when the backend wrote it, as the event's text.
void append_content_event(std::string& out, std::string_view id, std::uint32_t sequence,
                          std::uint64_t stamp_ns, Last last);

// The stamp of a content event; nothing where there is none.
std::optional<std::uint64_t> find_stamp(std::string_view event);

// The answer to a request that is not streamed, about 512 bytes.
void append_answer(std::string& out, std::string_view id);

// The answer to a prefill leg: what the decode leg must be given.
void append_prefill_answer(std::string& out, std::string_view id);

std::uint64_t monotonic_ns();

}  // namespace baton::bench
