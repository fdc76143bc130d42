// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// vLLM's checks of a generation request's body, in the words of its release 0.32.
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace baton::sim {

// A refusal of one parameter. vLLM repeats its name, and the value where it gives one, behind the
// sentence.
Error refused_parameter(std::string_view message, std::string_view parameter,
                        std::string_view value = {});
// One that names no parameter.
Error refused_request(std::string message);

// The request model: its own rules, then the types of its fields. If a value is taken for
// another ("2" for 2), the body as it is then read; nullopt if it is right as it is.
Result<std::optional<nlohmann::json>> validate_vllm_body(Api api, const nlohmann::json& body);

// Rules between fields that come before their types.
Result<void> check_vllm_tools(const nlohmann::json& body);
Result<void> check_vllm_logprobs(Api api, const nlohmann::json& body);
Result<void> check_vllm_formats(const nlohmann::json& body);

// Checks tools against the server's flags.
Result<void> check_vllm_tool_parser(const Options& options, const nlohmann::json& body);

// Sampling parameters, once the body has passed the model.
Result<void> check_vllm_sampling(const Options& options, Api api, const nlohmann::json& body);

}  // namespace baton::sim
