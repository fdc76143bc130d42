// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "wire/sse_reader.h"

#include <string>
#include <vector>

namespace {

using namespace baton;
using fuzz::require;

std::vector<std::string> run(std::string_view bytes, auto piece_size) {
  wire::SseReader reader;
  std::vector<std::string> data;
  std::string raw;
  std::size_t fed = 0;
  while (fed < bytes.size()) {
    const std::string piece(bytes.substr(fed, piece_size(bytes.size() - fed)));
    fed += piece.size();
    reader.feed(piece);
    while (const auto event = reader.next()) {
      require(!event->raw.empty(), "an event has bytes");
      raw += event->raw;
      if (!event->data.empty()) data.emplace_back(event->data);
    }
    require(raw == bytes.substr(0, raw.size()), "the events, joined, are what was fed");
    require(raw.size() + reader.held() == fed, "what is not in an event is held");
  }
  data.push_back(std::to_string(reader.held()));
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  fuzz::Cuts cuts(input.seed);
  const auto whole = run(input.bytes, [](std::size_t available) { return available; });
  const auto cut = run(input.bytes, [&](std::size_t available) { return cuts.next(available); });
  require(whole == cut, "the data does not depend on the cuts");
  return 0;
}
