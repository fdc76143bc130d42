// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/memory_budget.h"
#include "core/result.h"
#include "wire/json_object.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::engine {

// Role. A client's request body and the positions of its members. The legs of one request share it;
//   none changes it.
// Lifetime. Shared by the legs (a prefill leg may outlive the request), freed when the last leg has
//   sent it.
class ClientBody {
 public:
  // `memory` covers the text and the reading of it.
  static Result<std::shared_ptr<const ClientBody>> parse(std::string text,
                                                         MemoryShare memory = {}) {
    std::shared_ptr<ClientBody> body(new ClientBody(std::move(text), std::move(memory)));
    auto object = wire::JsonObject::parse(body->text_, &body->memory_);
    if (!object) return fail(std::move(object.error()));
    body->object_ = std::move(*object);
    return body;
  }
  ClientBody(const ClientBody&) = delete;
  ClientBody& operator=(const ClientBody&) = delete;

  const wire::JsonObject& object() const { return object_; }
  // The memory charged for the text and for the leg bodies made from it. Only for the thread that
  // reads the request.
  MemoryShare& memory() const { return memory_; }

 private:
  ClientBody(std::string text, MemoryShare memory)
      : memory_(std::move(memory)), text_(std::move(text)) {}
  mutable MemoryShare memory_;  // given back after the text
  std::string text_;
  wire::JsonObject object_;
};

}  // namespace baton::engine
