// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "libs/jinja/template.h"

#include <string>
#include <string_view>

// A template, a byte 0, and the JSON of its variables. Whatever it does, it ends within its limits,
// and does the same twice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  using namespace baton::jinja;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const auto read = Template::parse(std::string(input.substr(0, cut)));
  if (!read) return 0;
  Dict variables;
  if (cut != input.npos) {
    const auto given = value_from_json(input.substr(cut + 1));
    if (!given || !given->is_dict()) return 0;
    variables = given->as_dict();
  }
  const RenderContext context = {
      .now = std::chrono::system_clock::from_time_t(1'700'000'000),
      .limits = {.steps = 20'000, .depth = 20, .output_bytes = 64 << 10}};
  const auto first = (*read)->render(variables, context);
  if (first) fuzz::require(first->size() <= (64 << 10), "the output keeps to its limit");
  const auto second = (*read)->render(variables, context);
  fuzz::require(first.has_value() == second.has_value(), "rendering again ends the same way");
  if (first) fuzz::require(*first == *second, "rendering again gives the same text");
  return 0;
}
