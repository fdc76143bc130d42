// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/error.h"
#include "libs/tokenizer/error.h"

#include <expected>
#include <utility>

namespace baton::prompt {

// The libraries below `libs/` have errors of their own; here they become Baton's. Messages are kept.

constexpr Errc code_of(jinja::ErrorCode code) {
  switch (code) {
    case jinja::ErrorCode::InvalidTemplate:
    case jinja::ErrorCode::RenderFailed:
      return Errc::InvalidRequest;
    case jinja::ErrorCode::InvalidJson:
      return Errc::InvalidJson;
    case jinja::ErrorCode::Stopped:
      return Errc::ClientGone;
  }
  return Errc::Internal;
}

constexpr Errc code_of(tokenizer::ErrorCode code) {
  switch (code) {
    case tokenizer::ErrorCode::InvalidFile:
    case tokenizer::ErrorCode::InvalidText:
      return Errc::InvalidRequest;
    case tokenizer::ErrorCode::TooCostly:
      return Errc::PayloadTooLarge;
    case tokenizer::ErrorCode::Stopped:
      return Errc::ClientGone;
  }
  return Errc::Internal;
}

// The result of a library as a result of Baton.
template <class T, class LibraryError>
Result<T> as_result(std::expected<T, LibraryError> result) {
  if (result) return *std::move(result);
  return fail(code_of(result.error().code()), result.error().message());
}

}  // namespace baton::prompt
