// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "wire/json_object.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::engine {

// Role. A client's request body and where its members are. Legs of one request share it; none
//   changes it.
// Lifetime. Shared by the legs (a prefill leg may outlive the request), freed as soon as the last
//   has sent it.
class ClientBody {
 public:
  static Result<std::shared_ptr<const ClientBody>> parse(std::string text) {
    std::shared_ptr<ClientBody> body(new ClientBody(std::move(text)));
    auto object = wire::JsonObject::parse(body->text_);
    if (!object) return fail(std::move(object.error()));
    body->object_ = std::move(*object);
    return body;
  }
  ClientBody(const ClientBody&) = delete;
  ClientBody& operator=(const ClientBody&) = delete;

  const wire::JsonObject& object() const { return object_; }

 private:
  explicit ClientBody(std::string text) : text_(std::move(text)) {}
  std::string text_;
  wire::JsonObject object_;
};

}  // namespace baton::engine
