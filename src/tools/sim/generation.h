// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "tools/sim/connection.h"
#include "tools/sim/engine_core.h"
#include "tools/sim/fault_table.h"
#include "tools/sim/request_log.h"
#include "tools/sim/request_names.h"
#include "tools/sim/response.h"
#include "tools/sim/token_source.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::sim {

// Services of the server for one request.
struct GenerationServices {
  const Options& options;
  model::Endpoint self;  // where peers fetch blocks from
  const TokenSource& tokens;
  EngineCore& engine;
  FaultTable& faults;
  RequestLog& log;
  RequestNames& names;  // SGLang's
  std::uint64_t next_id = 1;
};

// Role. One request to /v1/chat/completions or /v1/completions from its bytes to its last token:
//   strikes faults, receives the KV of a decode leg, runs the sequences, writes the answer, holds
//   the blocks of a prefill leg.
// Confinement. The server's thread.
// Lifetime. Lives in the connection's coroutine; refers to the services and the connection, which
//   outlive it.
// Invariants. However it ends, its sequences are gone from the engine. If decode follows the
//   prefill's answer, a decode leg's blocks on the other worker have been released.
class Generation final : public SequenceListener, public Abortable {
 public:
  Generation(GenerationServices& services, Connection& connection, Api api);
  ~Generation() override;

  boost::asio::awaitable<void> serve(const HttpRequest& http);

  void on_token(TokenProduced& token) override;
  void abort_by_name() override;

 private:
  struct Choice {
    std::uint32_t index = 0;
    std::size_t prompt = 0;
    EngineRank* rank = nullptr;
    AnswerCursor cursor;
    SequenceId sequence = 0;
    std::string text;
    std::vector<TokenId> tokens;
    std::uint32_t cached_tokens = 0;
    SequenceTimes times;
    std::optional<AnswerCursor::Piece> held;  // tokens of a chunk that is not due yet
    std::string kept_key;
    std::vector<BlockId> kept_blocks;
  };

  Result<void> read(const HttpRequest& http, const nlohmann::json& body);
  void take_rank(std::uint64_t log_entry);
  Result<void> take_name();
  bool kills_engine() const;
  boost::asio::awaitable<void> until_aborted();
  // The engine goes on for a while before it checks the connection.
  boost::asio::awaitable<void> until_noticed();
  boost::asio::awaitable<void> answer_aborted();
  boost::asio::awaitable<bool> strike_before_engine();
  boost::asio::awaitable<void> produce();
  boost::asio::awaitable<Result<void>> receive_kv();
  Result<void> check_capacity() const;
  void submit();
  boost::asio::awaitable<void> stream_answer();
  boost::asio::awaitable<bool> write_pending();
  boost::asio::awaitable<void> answer_whole();
  boost::asio::awaitable<Result<void>> await_transfers();
  boost::asio::awaitable<void> strike_in_stream();
  boost::asio::awaitable<void> fail_with(Error error);

  void stream_token(Choice& choice, const TokenProduced& token, AnswerCursor::Piece piece);
  void append_event();
  bool keeps_blocks(const AnswerPlan& plan) const;
  void keep_for_decode(Choice& choice, TokenProduced& token);
  AnswerLimits limits_for(std::size_t prompt_tokens) const;
  std::uint32_t fetched_tokens(std::size_t prompt_tokens) const;
  Usage usage() const;
  Usage prompt_usage() const;
  std::vector<FinishedChoice> finished() const;
  FinishedChoice finished(const Choice& choice) const;
  std::string internal_request_id(const Choice& choice) const;
  std::string kv_transfer_params(const Choice& choice) const;
  std::string disaggregated_params(const Choice& choice) const;
  bool breaks_after_tokens() const;
  // True when that cut a transfer of this leg's blocks.
  bool withdraw_sequences();
  void release_sources(const boost::asio::any_io_executor& executor);

  GenerationServices& services_;
  Connection& connection_;
  GenerationRequest request_;
  std::optional<Fault> fault_;
  std::unique_ptr<ResponseShape> shape_;
  std::uint64_t number_ = 0;
  std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  EngineRank* rank_ = nullptr;  // the one that counts this request as its own
  std::vector<Choice> choices_;
  std::size_t unfinished_ = 0;
  std::size_t sources_taken_ = 0;
  std::vector<std::unique_ptr<TransferWatch>> transfers_;
  Wakeup wake_;
  Wakeup abort_;
  std::string name_;                       // while others can abort it by it
  bool aborted_ = false;                   // by its name
  std::string event_;                      // scratch: one or more SSE events
  std::string pending_;                    // framed, not yet written
  std::vector<std::size_t> pending_ends_;  // of each token's bytes, kept only while being slow
  std::uint64_t tokens_ = 0;
  bool struck_ = false;
  bool ended_ = false;
};

}  // namespace baton::sim
