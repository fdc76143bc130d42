// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/given_ids.h"

#include "wire/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::array<std::string_view, 3> kFields{"prompt", "input_ids", "prompt_token_ids"};
constexpr std::size_t kLongestQuote = 32;

bool is_list(std::string_view json) { return json.front() == '['; }
bool is_number(std::string_view json) {
  return json.front() == '-' || (json.front() >= '0' && json.front() <= '9');
}

// The field of a completion is no field of a chat.
bool counts(std::string_view field, engine::Api api) {
  return field != "prompt" || api == engine::Api::Completions;
}

// Calls `visit` with each element and its number, until that fails. A list of ids can be long: it
// is walked in place.
template <class Visit>
Result<void> walk(std::string_view list, Visit visit) {
  std::size_t number = 0;
  std::size_t at = wire::skip_space(list, 1);
  while (at < list.size() && list[at] != ']') {
    const std::size_t end = wire::skip_value(list, at);
    if (auto visited = visit(list.substr(at, end - at), number++); !visited) return visited;
    at = wire::skip_space(list, end);
    if (at < list.size() && list[at] == ',') at = wire::skip_space(list, at + 1);
  }
  return {};
}

// Role. Checks the ids of one field.
class Checker {
 public:
  Checker(std::string_view field, std::optional<std::uint64_t> vocabulary)
      : field_(field),
        limit_(std::min(vocabulary.value_or(kWidest), kWidest)),
        whose_(vocabulary ? " of this model" : "") {}

  // The engine judges values that are neither an id nor a list of them.
  Result<void> check(std::string_view list) const {
    return walk(list, [&](std::string_view one, std::size_t number) -> Result<void> {
      if (is_list(one)) {
        return walk(one, [&](std::string_view id, std::size_t inner) -> Result<void> {
          if (is_sound(id)) return {};
          return refuse(fmt::format("{}[{}][{}]", field_, number, inner), id);
        });
      }
      if (!is_number(one) || is_sound(one)) return {};
      return refuse(fmt::format("{}[{}]", field_, number), one);
    });
  }

 private:
  // Engines count in 32 bits with a sign.
  static constexpr std::uint64_t kWidest = std::uint64_t{1} << 31;

  bool is_sound(std::string_view text) const {
    std::uint64_t id = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && id < limit_;
  }
  std::unexpected<Error> refuse(std::string place, std::string_view id) const {
    Error error(Errc::InvalidRequest,
                fmt::format("{} is {}, but token ids{} are integers from 0 to {}", place,
                            id.substr(0, kLongestQuote), whose_, limit_ - 1));
    error.with_param(std::move(place));
    return fail(std::move(error));
  }

  std::string_view field_;
  std::uint64_t limit_;
  std::string_view whose_;
};

}  // namespace

std::size_t given_ids_bytes(engine::Api api, const wire::JsonObject& body) {
  std::size_t bytes = 0;
  for (const std::string_view field : kFields) {
    const auto given = body.find(field);
    if (given && is_list(*given) && counts(field, api)) bytes += given->size();
  }
  return bytes;
}

Result<void> check_given_ids(engine::Api api, const wire::JsonObject& body,
                             std::optional<std::uint64_t> vocabulary) {
  for (const std::string_view field : kFields) {
    const auto given = body.find(field);
    if (!given || !is_list(*given) || !counts(field, api)) continue;
    if (auto checked = Checker(field, vocabulary).check(*given); !checked) return checked;
  }
  return {};
}

}  // namespace baton::pipeline
