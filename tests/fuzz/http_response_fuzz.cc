// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "wire/http_parser.h"

#include <string>
#include <vector>

namespace {

using namespace baton;
using fuzz::require;

// Everything that can be seen of a connection's answers, fed in pieces; then the peer closes.
std::vector<std::string> run(std::string_view bytes, auto piece_size) {
  wire::ResponseParser parser(1024);
  std::vector<std::string> seen;
  std::string body;
  std::string buffer;  // of its own, as the parser writes into it
  std::span<char> piece;
  auto status = wire::ParseStatus::NeedMore;
  while (true) {
    const auto progress = parser.feed(piece);
    status = progress.status;
    require(progress.consumed <= piece.size(), "no more is consumed than was given");
    require(progress.body.empty() ||
                (progress.body.data() >= piece.data() &&
                 progress.body.data() + progress.body.size() <= piece.data() + progress.consumed),
            "the body lies inside what was consumed");
    body += progress.body;
    piece = piece.subspan(progress.consumed);
    if (status == wire::ParseStatus::HeadDone) {
      seen.push_back(std::to_string(parser.head().status));
    } else if (status == wire::ParseStatus::Done) {
      seen.push_back("body " + body);
      body.clear();
      parser.next();
    } else if (status == wire::ParseStatus::Failed) {
      break;
    } else {
      require(piece.empty(), "asking for more means all was consumed");
      if (bytes.empty()) break;
      buffer = bytes.substr(0, piece_size(bytes.size()));
      bytes.remove_prefix(buffer.size());
      piece = buffer;
    }
  }
  seen.push_back("body " + body);
  seen.push_back(parser.finish() == wire::ParseStatus::Failed ? parser.error().message() : "done");
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
