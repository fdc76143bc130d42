// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm/trtllm_auth.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <iterator>

namespace baton::engine {
namespace {

using nlohmann::json;

constexpr std::string_view kHeader = "x-trtllm-disagg-auth";

// Sorted, without blanks and in ASCII, as the server writes it for itself.
std::string canonical(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string hex_hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i)
    fmt::format_to(std::back_inserter(hex), "{:02x}", digest[i]);
  return hex;
}

json member(const json& params, const char* name) {
  const auto found = params.find(name);
  return found == params.end() ? json() : *found;
}

}  // namespace

std::string auth_header(std::string_view disaggregated_params, const model::TrtllmAuth& auth) {
  if (auth.key.empty() || disaggregated_params.empty()) return {};
  const json params = json::parse(disaggregated_params, nullptr, false);
  if (!params.is_object()) return {};
  json endpoint = member(params, "ctx_info_endpoint");
  if (endpoint.is_array()) endpoint = endpoint.empty() ? json() : json(endpoint.front());
  const json state = member(params, "encoded_opaque_state");
  if (endpoint.is_null() && state.is_null()) return {};
  if (auth.part == model::SignedPart::Params)
    return fmt::format("{}: {}\r\n", kHeader, hex_hmac(auth.key, canonical(params)));
  const json fields{{"ctx_info_endpoint", endpoint}, {"encoded_opaque_state", state}};
  return fmt::format("{}: sha256={}\r\n", kHeader, hex_hmac(auth.key, canonical(fields)));
}

}  // namespace baton::engine
