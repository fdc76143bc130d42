// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string_view>

namespace baton::pipeline {

using boost::asio::awaitable;

// The sink of an answer: the doorway between the product and the protocol its client speaks. A call
// fails when the client has gone; nothing more can be sent then.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;

  // A whole answer at once.
  virtual awaitable<Result<void>> respond(int status, const wire::Headers& headers,
                                          std::string_view body) = 0;
  // An answer piece by piece: begin once, write often, then end. Each write is with the client, or
  // in the kernel's hands, when it returns: the caller reads the next piece only then.
  virtual awaitable<Result<void>> begin(int status, const wire::Headers& headers) = 0;
  virtual awaitable<Result<void>> write(std::string_view piece) = 0;
  virtual awaitable<Result<void>> end() = 0;
  // A write as far as it goes without waiting, and without a coroutine: its result, or nullopt if the
  // client does not take all of the piece at once. Then write_rest() must follow, with the same piece.
  virtual std::optional<Result<void>> write_now(std::string_view) { return std::nullopt; }
  virtual awaitable<Result<void>> write_rest(std::string_view piece) { return write(piece); }

  // The request is given up, and goes on in the background: no other follows on the connection, and
  // unsent data is soon dropped. False if nothing can be sent now: the answer is complete, or a
  // piece of it is being written.
  virtual bool give_up() { return true; }
};

}  // namespace baton::pipeline
