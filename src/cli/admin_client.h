// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "model/worker.h"

#include <string>
#include <string_view>

namespace baton::cli {

// Role. Asks a running router at its admin address, one call after the other.
// Confinement. Any thread; a call blocks it until there is an answer, or none for a few seconds.
class AdminClient {
 public:
  struct Answer {
    int status = 0;
    std::string body;
  };

  // An empty key is not sent.
  AdminClient(model::Endpoint router, std::string key);

  // An error says what to do: nothing answers at the address, or it is no router.
  Result<Answer> ask(std::string_view method, std::string_view path, std::string_view body = {});

 private:
  model::Endpoint router_;
  std::string key_;
};

}  // namespace baton::cli
