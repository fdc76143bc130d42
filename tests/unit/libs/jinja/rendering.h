// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::jinja {

// 14 November 2023, 22:13:20 UTC.
inline RenderContext usual() {
  return {.now = std::chrono::system_clock::from_time_t(1'700'000'000)};
}

inline Result<std::string> render(std::string_view source, std::string_view variables = "{}",
                                  const RenderContext& context = usual()) {
  const auto read = Template::parse(std::string(source));
  if (!read) return fail(read.error());
  const auto values = value_from_json(variables);
  if (!values) return fail(values.error());
  return (*read)->render(values->as_dict(), context);
}

// What a template makes of variables given as JSON.
inline std::string rendered(std::string_view source, std::string_view variables = "{}") {
  const auto result = render(source, variables);
  EXPECT_TRUE(result) << source << ": " << (result ? "" : result.error().message());
  return result.value_or("failed");
}

// What an expression prints.
inline std::string shown(std::string_view expression, std::string_view variables = "{}") {
  return rendered("{{ " + std::string(expression) + " }}", variables);
}

// Why a template cannot be read or rendered.
inline std::string failure(std::string_view source, std::string_view variables = "{}") {
  const auto result = render(source, variables);
  if (result) return "rendered " + *result;
  EXPECT_THAT(result.error().code(),
              testing::AnyOf(ErrorCode::InvalidTemplate, ErrorCode::RenderFailed));
  return result.error().message();
}

inline std::string refusal(std::string_view expression, std::string_view variables = "{}") {
  return failure("{{ " + std::string(expression) + " }}", variables);
}

}  // namespace baton::jinja
