// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string_view>

namespace baton::engine {

enum class Api { Chat, Completions };

constexpr std::string_view path_of(Api api) {
  return api == Api::Chat ? "/v1/chat/completions" : "/v1/completions";
}

}  // namespace baton::engine
