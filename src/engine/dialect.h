// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "model/worker.h"
#include "wire/json_object.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

enum class Api { Chat, Completions };
std::string_view path_of(Api api);

// A client's request, as far as dialects look at it.
struct ClientCall {
  Api api;
  const wire::JsonObject& body;
  // What the workers call the model, where the client used another name for it.
  std::string_view model = {};
};

// What identifies one hand-off; each dialect uses its part.
struct HandoffTicket {
  std::uint64_t disagg_request_id = 0;          // TensorRT-LLM: at least 2^40, unique
  std::uint64_t bootstrap_room = 0;             // SGLang: 1 … 2^63-1, unique
  std::string bootstrap_host;                   // SGLang: the prefill worker's host
  std::optional<std::uint16_t> bootstrap_port;  // SGLang: unknown → null
};

// What a prefill worker's answer means for the request.
struct PrefillOutcome {
  // The request ended in the prefill already (end of text as first token, stop string …): this is
  // the client's answer.
  std::optional<std::string> final_answer;
  // Otherwise what the decode leg gets, as raw JSON exactly as the prefill worker wrote it. Empty:
  // nothing was kept, the decode worker computes the prompt itself.
  std::string handoff;
  std::string prompt_token_ids;
};

enum class LegOrder { PrefillFirst, Together };
// Whether the decode leg serves a client, or only takes the KV blocks off the prefill worker's
// hands.
enum class DecodePurpose { Answer, Release };

// Role. How one engine is spoken to: which fields each leg gets, what its prefill answer means.
//   Everything else is the same for all.
// Confinement. Immutable, any thread.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual LegOrder order() const = 0;
  // False where the engine cannot hand this request over; it is then served by a decode worker
  // alone.
  virtual bool can_hand_off(const ClientCall& call) const = 0;
  virtual wire::SplicedBody prefill_body(const ClientCall& call,
                                         const HandoffTicket& ticket) const = 0;
  virtual wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                        const PrefillOutcome& outcome,
                                        DecodePurpose purpose) const = 0;
  // Requires: order() is PrefillFirst.
  virtual Result<PrefillOutcome> read_prefill_answer(const std::string& json) const = 0;

  // For a worker that does both phases: the client's body without hand-off fields a client may have
  // put in.
  static wire::SplicedBody plain_body(const ClientCall& call);
};

const Dialect& dialect_of(model::Engine engine);

// True where `prompt` is a list of prompts, each of which would need a hand-off of its own.
bool has_prompt_list(const ClientCall& call);

}  // namespace baton::engine
