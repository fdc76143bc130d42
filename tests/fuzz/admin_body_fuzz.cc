// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Bodies of POST and PATCH /workers: nothing but a worker or reasons comes of them.
#include "config/announcement.h"
#include "fuzz/fuzz_input.h"
#include "wire/json_text.h"

#include <string>
#include <string_view>

namespace {

using namespace baton;
using Read = std::expected<model::Announcement, std::vector<config::Problem>>;

void check(const Read& read) {
  if (read) {
    const auto again = config::parse_announcement(config::to_json(*read), "fuzz");
    fuzz::require(again && *again == *read, "what is written is read as it was");
    return;
  }
  fuzz::require(!read.error().empty(), "a refusal has its reasons");
  for (const config::Problem& problem : read.error()) {
    fuzz::require(!problem.message.empty(), "a reason says what");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  (void)wire::validate_json_object(body);
  check(config::parse_announcement(body, "fuzz"));
  const auto before = config::parse_announcement(
      R"({"model":"m","url":"http://127.0.0.1:1","engine":"vllm","role":"decode","kv_blocks":9})",
      "fuzz");
  fuzz::require(before.has_value(), "the worker is one");
  check(config::amend_announcement(*before, body, "fuzz"));
  return 0;
}
