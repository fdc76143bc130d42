// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <string>

namespace baton::model {

// Part of a request's disaggregated_params that TensorRT-LLM servers require signed; it differs by
// release.
enum class SignedPart : std::uint8_t {
  Fields,  // ctx_info_endpoint and encoded_opaque_state
  Params,  // all of it
};

// How requests are signed for TensorRT-LLM servers with an internal_request_auth_key.
struct TrtllmAuth {
  std::string key;  // empty: nothing is signed
  SignedPart part = SignedPart::Fields;
  bool operator==(const TrtllmAuth&) const = default;
};

}  // namespace baton::model
