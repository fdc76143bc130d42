// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"
#include "wire/json_object.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace baton::engine {

// A client's request body with the call that dialects see.
struct ClientRequest {
  ClientRequest(Api api, std::string body, std::string model = {})
      : text(std::move(body)),
        object(wire::JsonObject::parse(text).value()),
        name(std::move(model)),
        call{api, object, name} {}
  ClientRequest(const ClientRequest&) = delete;
  ClientRequest& operator=(const ClientRequest&) = delete;

  std::string text;
  wire::JsonObject object;
  std::string name;
  ClientCall call;
};

inline constexpr model::HandoffMode kAllModes[] = {
    model::HandoffMode::NixlPull,     model::HandoffMode::NixlPush,
    model::HandoffMode::Mooncake,     model::HandoffMode::Bootstrap,
    model::HandoffMode::ContextFirst, model::HandoffMode::GenerationFirst};

inline nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }
inline nlohmann::json json(const wire::SplicedBody& body) { return json(body.joined()); }

}  // namespace baton::engine
