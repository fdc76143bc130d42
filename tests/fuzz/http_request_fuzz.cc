// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "wire/http_parser.h"

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace baton;
using fuzz::require;

constexpr wire::HttpLimits kLimits{.header_bytes = 1024, .body_bytes = 512};

void check_head(const wire::RequestHead& head) {
  require(!(head.chunked && head.content_length), "one kind of framing only");
  require(head.content_length.value_or(0) <= kLimits.body_bytes, "no length over the limit");
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    const auto [name, value] = head.headers[i];
    require(!name.empty() && name.find_first_of(" \t\r\n:") == name.npos, "names are tokens");
    require(std::ranges::none_of(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; }),
            "values stay on their line");
  }
}

// Everything that can be seen of a connection's requests, fed in pieces.
std::vector<std::string> run(std::string_view bytes, auto piece_size) {
  wire::RequestParser parser(kLimits);
  std::vector<std::string> seen;
  std::string_view piece;
  while (true) {
    const auto [consumed, status] = parser.feed(piece);
    require(consumed <= piece.size(), "no more is consumed than was given");
    require(parser.body().size() <= kLimits.body_bytes, "the body stays within its limit");
    piece.remove_prefix(consumed);
    if (status == wire::ParseStatus::Failed) {
      seen.push_back("failed: " + parser.error().message());
      return seen;
    }
    if (status == wire::ParseStatus::HeadDone) {
      check_head(parser.head());
      seen.push_back(parser.head().method + ' ' + parser.head().target);
      for (std::size_t i = 0; i < parser.head().headers.size(); ++i) {
        const auto [name, value] = parser.head().headers[i];
        seen.push_back(std::string(name).append(": ").append(value));
      }
    } else if (status == wire::ParseStatus::Done) {
      seen.push_back("body " + parser.body());
      parser.next();
    } else {
      require(piece.empty(), "asking for more means all was consumed");
      if (bytes.empty()) break;
      piece = bytes.substr(0, piece_size(bytes.size()));
      bytes.remove_prefix(piece.size());
    }
  }
  seen.push_back(parser.idle() ? "idle" : "unfinished");
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  fuzz::Cuts cuts(input.seed);
  const auto whole = run(input.bytes, [](std::size_t available) { return available; });
  const auto cut = run(input.bytes, [&](std::size_t available) { return cuts.next(available); });
  require(whole == cut, "the outcome does not depend on the cuts");
  return 0;
}
