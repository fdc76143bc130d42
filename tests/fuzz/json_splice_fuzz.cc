// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "wire/json_object.h"
#include "wire/json_text.h"

#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace baton;
using fuzz::require;

// The keys the seeds use; which of them go and which are set is the seed's choice.
constexpr std::array<std::string_view, 6> kKeys = {"model", "stream", "a", "b", "n", ""};

// What stands between quotes.
void read_as_string(std::string_view raw) {
  const auto quoted = nlohmann::json::parse('"' + std::string(raw) + '"', nullptr, false);
  if (!quoted.is_string()) return;  // halves of characters are refused there
  require(wire::unescape(raw) == quoted.get<std::string>(),
          "a string means what others read in it");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  read_as_string(input.bytes);
  const auto object = wire::JsonObject::parse(input.bytes);
  if (!object) return 0;
  require(wire::JsonSplice(*object).build().joined() == input.bytes, "no change keeps every byte");

  wire::JsonSplice splice(*object);
  const auto removes = [&](std::size_t i) { return (input.seed >> i & 1U) != 0; };
  const auto sets = [&](std::size_t i) { return (input.seed >> (8 + i) & 1U) != 0; };
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    if (removes(i)) splice.remove(kKeys[i]);
    // Odd ones in two short parts around a long one.
    if (sets(i) && i % 2 == 0) splice.set(kKeys[i], "[7,\"x\"]");
    if (sets(i) && i % 2 == 1) splice.set_long(kKeys[i], "[7", ",\"x\"", "]");
  }
  const auto body = splice.build();
  const std::string text = body.joined();
  require(text.size() == body.size(), "the size is that of the pieces");

  const auto again = wire::JsonObject::parse(text);
  require(again.has_value(), "the result is valid JSON");
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const auto now = again->find(kKeys[i]);
    if (sets(i)) {
      require(now == "[7,\"x\"]", "a member that was set has its new value");
    } else if (removes(i)) {
      require(!now, "a removed member is gone");
    } else {
      require(now == object->find(kKeys[i]), "an untouched member keeps its text");
    }
    object->find_integer(kKeys[i]);
    if (const auto value = object->find_string(kKeys[i])) {
      const std::string quoted = "{\"q\":" + wire::json_quote(*value) + "}";
      const auto parsed = wire::JsonObject::parse(quoted);
      require(parsed && parsed->find_string("q") == value, "quoting is undone by reading");
    }
  }
  return 0;
}
