// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "pipeline/response_sink.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::pipeline {

// Role. A client that remembers everything, can be slow, and can leave.
class RecordingSink final : public ResponseSink {
 public:
  explicit RecordingSink(boost::asio::io_context& io) : taken_(io) {}

  awaitable<Result<void>> respond(int given_status, const wire::Headers& given_headers,
                                  std::string_view whole) override;
  awaitable<Result<void>> begin(int given_status, const wire::Headers& given_headers) override;
  awaitable<Result<void>> write(std::string_view piece) override;
  awaitable<Result<void>> end() override;
  std::optional<Result<void>> write_now(std::string_view piece) override;
  awaitable<Result<void>> write_rest(std::string_view piece) override;
  bool give_up() override;

  // From now on a write returns only when take() is called.
  void be_slow() { slow_ = true; }
  void take() {
    slow_ = false;
    taken_.cancel();
  }

  std::optional<std::size_t> at_once;  // bytes of a piece that it takes without waiting
  int status = 0;
  wire::Headers headers;
  std::string body;
  std::size_t writes = 0;
  int answers = 0;  // begun or given whole
  bool ended = false;
  bool gone = false;
  bool given_up = false;

 private:
  Result<void> outcome() const;

  std::size_t taken_at_once_ = 0;  // of the piece whose rest is to be written
  bool slow_ = false;
  bool writing_ = false;
  boost::asio::steady_timer taken_;
};

}  // namespace baton::pipeline
