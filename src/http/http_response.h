// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "net/connection.h"
#include "net/peer_patience.h"
#include "pipeline/response_sink.h"
#include "wire/http_message.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace baton::http {

using boost::asio::awaitable;

// Role. Writes one HTTP/1 response: whole with a length, or piece by piece in chunks (HTTP/1.0:
//   until the connection closes).
// Confinement. The session's I/O thread.
// Lifetime. One request of a session.
// Invariants. A response once begun is ended, or the connection is not used again.
class HttpResponse final : public pipeline::ResponseSink {
 public:
  struct ResponseOptions {
    bool http_1_0 = false;
    bool keep_alive = true;
    const bool* closing = nullptr;  // the session may be told to end while a request is served
    bool head_only = false;         // HEAD: everything but the body
    std::string request_id;
    std::chrono::milliseconds write_timeout;  // without a byte; and see PeerPatience
  };

  HttpResponse(net::Connection& connection, ResponseOptions options)
      : connection_(connection), options_(std::move(options)), patience_(options_.write_timeout) {}

  awaitable<Result<void>> respond(int status, const wire::Headers& headers,
                                  std::string_view body) override;
  awaitable<Result<void>> begin(int status, const wire::Headers& headers) override;
  awaitable<Result<void>> write(std::string_view piece) override;
  awaitable<Result<void>> end() override;
  std::optional<Result<void>> write_now(std::string_view piece) override;
  awaitable<Result<void>> write_rest(std::string_view piece) override;
  bool give_up() override;

  // The connection can carry another request.
  bool reusable() const { return complete_ && options_.keep_alive; }
  void close_after() { options_.keep_alive = false; }

 private:
  // A piece as it goes over the wire; the head goes with the first.
  class Framed;
  std::string head_text(int status, const wire::Headers& headers, std::string_view framing);
  static Result<void> result_of(net::IoResult written);
  awaitable<Result<void>> put(std::span<const std::string_view> pieces);
  Result<void> complete(Result<void> written);

  net::Connection& connection_;
  ResponseOptions options_;
  net::PeerPatience patience_;
  std::size_t taken_ = 0;  // bytes of the framed piece that write_now() got rid of
  bool writing_ = false;   // waits for the client
  bool complete_ = false;
  bool given_up_ = false;
  std::string pending_head_;  // goes out with the first piece, in one system call
};

std::string_view reason_phrase(int status);

}  // namespace baton::http
