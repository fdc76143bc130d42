// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "libs/jinja/template.h"

#include <string>

// Any bytes are a template or are refused with a reason; reading them always ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto read = jinja::Template::parse(source);
  if (!read) fuzz::require(!read.error().message().empty(), "a refusal says why");
  return 0;
}
