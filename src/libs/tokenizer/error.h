// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace baton::tokenizer {

enum class ErrorCode : std::uint8_t {
  InvalidFile,  // a file is missing, cannot be read, or uses a feature that the library does not have
  InvalidText,  // the text to encode is not UTF-8
  TooCostly,    // a regular expression takes too many steps on this text
  Stopped,      // the caller's stop token was set
};

// Role. An error: its kind, and a sentence for the user.
// Confinement. A value.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error(code, std::move(message)));
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

}  // namespace baton::tokenizer
