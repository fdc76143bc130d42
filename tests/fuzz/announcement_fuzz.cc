// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/announcement.h"
#include "fuzz/fuzz_input.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = config::parse_announcement(text, "fuzz");
  if (parsed) {
    const auto again = config::parse_announcement(config::to_json(*parsed), "fuzz");
    fuzz::require(again && *again == *parsed, "what is written is read as it was");
    return 0;
  }
  fuzz::require(!parsed.error().empty(), "a refusal has its reasons");
  for (const config::Problem& problem : parsed.error()) {
    fuzz::require(!problem.message.empty() && problem.line >= 0, "a reason says what and where");
  }
  return 0;
}
