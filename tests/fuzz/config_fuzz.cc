// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/load.h"
#include "fuzz/fuzz_input.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // It would read whatever file the input names.
  for (const std::string_view key : {"api_keys_file", "admin_keys_file", "password_file"}) {
    if (text.find(key) != std::string_view::npos) return 0;
  }
  const auto parsed = config::parse(text, "fuzz.yaml", {});
  if (parsed) return 0;
  fuzz::require(!parsed.error().empty(), "a refusal has its reasons");
  for (const config::Problem& problem : parsed.error()) {
    fuzz::require(!problem.message.empty() && problem.line >= 0, "a reason says what and where");
    fuzz::require(!problem.to_string().empty(), "a reason can be shown");
  }
  return 0;
}
