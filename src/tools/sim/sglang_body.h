// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// SGLang's checks of a request's body, in the words of its release 0.5.23.
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace baton::sim {

// The types of the fields. If a value is taken for another ("2" for 2), the body as it is then
// read; nullopt if it is right as it is.
Result<std::optional<nlohmann::json>> validate_sglang_body(Api api, const nlohmann::json& body);

// Rules of its own, once the types are right, and those of sampling.
Result<void> check_sglang_rules(const Options& options, Api api, const nlohmann::json& body);
Result<void> check_sglang_sampling(const nlohmann::json& body);

// A refusal of a kind that is not the usual one. SGLang names no parameters: their place has it.
Error sglang_refusal(std::string message, std::string_view type);

// The function that serves a request, which SGLang names beside what is wrong with it.
struct SglangRoute {
  std::string_view function;
  std::string request;  // method and path
};

// Error for a body that is no JSON (discarded), no object, or absent (null).
Error unreadable_sglang_body(Api api, const nlohmann::json& body);
Error unreadable_sglang_body(const SglangRoute& route, const nlohmann::json& body);

// The bodies of /tokenize and /detokenize, which `path` is or ends with.
Result<void> check_sglang_tokenize(std::string_view path, const nlohmann::json& body);
Result<void> check_sglang_detokenize(std::string_view path, const nlohmann::json& body);

// The body of /abort_request.
Result<void> check_sglang_abort(const std::string& body);

// SGLang's own API, /generate, of which only what it refuses is known here: its answer, or nullopt.
std::optional<std::string> generate_refusal(const std::string& body);

// A failure that SGLang's server did not foresee: 500, and no word of it.
Error sglang_stumbles();
bool is_stumble(const Error& error);

}  // namespace baton::sim
