// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/trtllm_auth.h"

#include <string>
#include <string_view>

namespace baton::engine {

// The header line by which a TensorRT-LLM server knows that `disaggregated_params`, raw JSON, are a
// router's and not a client's; empty where there is no key, or nothing in them that needs one.
std::string auth_header(std::string_view disaggregated_params, const model::TrtllmAuth& auth);

}  // namespace baton::engine
