// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/answer.h"
#include "tools/sim/request.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t created_cache_tokens = 0;  // computed and kept for others
};

// One finished choice of an answer that was not streamed.
struct FinishedChoice {
  std::uint32_t index = 0;
  std::string text = {};  // the answer, or the arguments of the tool call
  Finish finish = Finish::Stop;
  std::optional<std::string> matched_stop = {};
  std::uint64_t hash = 0;
  std::uint32_t begun = 0;           // where in the answer it goes on
  std::uint32_t count = 0;           // its tokens
  std::vector<TokenId> tokens = {};  // where they are told
  const std::vector<TokenId>* prompt = nullptr;
  std::string disaggregated_params = {};  // TensorRT-LLM context answers: a JSON object
};

// Role. The engine's answer on the wire: SSE events token by token, or one JSON body. This class is
//   TensorRT-LLM's; the others derive from it. The token path only appends to the caller's buffer;
//   parts that are the same in every event are escaped once.
// Confinement. One thread.
// Lifetime. One per request.
class ResponseShape {
 public:
  ResponseShape(model::Engine engine, const GenerationRequest& request, std::string id,
                const std::string& model, std::int64_t created);
  virtual ~ResponseShape() = default;

  // The chunk that opens a choice: chat's role, and the tool call's head.
  virtual void open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                           const std::vector<TokenId>& prompt, const Usage* usage = nullptr) const;
  // One token, or some that come together. `finish` on the last one, where the engine puts it
  // there; `prompt` on the first.
  virtual void token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
                     const AnswerPlan* finish, const Usage* usage,
                     const std::vector<TokenId>* prompt = nullptr) const;
  virtual void close_choice(std::string& out, std::uint32_t index, const AnswerPlan& plan) const;
  // SGLang: what a stream tells behind its choices, where it was asked for.
  virtual void extension(std::string& /*out*/, const std::vector<FinishedChoice>& /*choices*/,
                         const Usage& /*usage*/) const {}
  virtual void usage(std::string& out, const Usage& usage) const;
  // SGLang: the chunk and the whole answer of a request that was aborted by its name.
  virtual void abort(std::string& /*out*/) const {}
  virtual std::string aborted(const Usage& /*usage*/) const { return "{}"; }
  static void done(std::string& out) { out += "data: [DONE]\n\n"; }

  // Whether the last token's chunk carries the finish reason; else `close_choice` does.
  virtual bool finish_rides_on_token() const { return !tool_call_; }

  // `kv_transfer_params` is vLLM's prefill answer: a JSON value, or empty where there is none.
  virtual std::string whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                            const std::string& kv_transfer_params) const;

  const std::string& id() const { return id_; }

 private:
  void begin(std::string& out, std::uint32_t index) const;
  static void end(std::string& out, const AnswerPlan* finish, const Usage* usage);

 protected:
  model::Engine engine_;
  Api api_;
  bool tool_call_;
  bool token_ids_;
  std::string tool_name_;  // as a JSON string
  std::string id_;
  std::string head_;  // of every chunk, up to the list of choices
  std::string model_;
  std::int64_t created_;
};

// The one of the simulated engine.
std::unique_ptr<ResponseShape> make_response_shape(const Options& options,
                                                   const GenerationRequest& request, std::string id,
                                                   std::int64_t created);

std::string_view to_string(Finish finish);
std::string format_usage(const Usage& usage);
// Quoted and escaped.
std::string json_string(std::string_view text);

}  // namespace baton::sim
