// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/known_members.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. The fields of one normalizer or pre-tokenizer in a tokenizer.json. `error` reports faults
//   in them, after all needed fields were read.
// Confinement. One thread. Lifetime. While the JSON document lives.
class JsonFields {
 public:
  // `what` is what the element is, for errors.
  JsonFields(simdjson::dom::element json, std::string_view what) : json_(json), what_(what) {
    if (json.get_object().error() != simdjson::SUCCESS ||
        json["type"].get(type_) != simdjson::SUCCESS) {
      complain("has no type");
    }
  }

  std::string_view type() const { return type_; }

  bool flag(std::string_view name) { return need<bool>(name, "true or false"); }
  bool flag_or(std::string_view name, bool otherwise) {
    return optional<bool>(name, "true or false").value_or(otherwise);
  }
  std::optional<bool> optional_flag(std::string_view name) {
    return optional<bool>(name, "true or false");
  }
  std::string_view text(std::string_view name) { return need<std::string_view>(name, "a string"); }
  std::string_view text_or(std::string_view name, std::string_view otherwise) {
    return optional<std::string_view>(name, "a string").value_or(otherwise);
  }
  std::uint64_t number_or(std::string_view name, std::uint64_t otherwise) {
    return optional<std::uint64_t>(name, "a whole number").value_or(otherwise);
  }
  simdjson::dom::element any(std::string_view name) {
    simdjson::dom::element value = json_;
    if (json_[name].get(value) != simdjson::SUCCESS) {
      complain(fmt::format("lacks `{}`", name));
    }
    return value;
  }
  // Complains of the first member that the table does not give to this type.
  void only(std::span<const KnownMembers> table) {
    if (const auto unknown = find_unknown_member(json_.get_object().value(), type_, table)) {
      complain(fmt::format("has `{}`, which Baton does not know", *unknown));
    }
  }

  void complain(std::string_view about) {
    if (!error_) {
      const std::string name = type_.empty() ? "" : fmt::format(" {}", type_);
      error_ = Error(ErrorCode::InvalidFile,
                     fmt::format("The {}{} of the tokenizer {}.", what_, name, about));
    }
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> optional(std::string_view name, std::string_view kind) {
    simdjson::dom::element value;
    if (json_[name].get(value) != simdjson::SUCCESS || value.is_null()) {
      return std::nullopt;
    }
    T result{};
    if (value.get(result) != simdjson::SUCCESS) {
      complain(fmt::format("needs {} as `{}`", kind, name));
      return std::nullopt;
    }
    return result;
  }
  template <class T>
  T need(std::string_view name, std::string_view kind) {
    const auto value = optional<T>(name, kind);
    if (!value) {
      complain(fmt::format("needs {} as `{}`", kind, name));
    }
    return value.value_or(T{});
  }

  simdjson::dom::element json_;
  std::string_view what_;
  std::string_view type_;
  std::optional<Error> error_;
};

}  // namespace baton::tokenizer
