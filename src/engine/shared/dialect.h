// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/api.h"
#include "engine/shared/completion_json.h"
#include "engine/shared/leg_name.h"
#include "model/version.h"
#include "model/worker.h"
#include "wire/json_object.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace baton::engine {

// The part of an answer that was produced before its worker failed; another worker continues it.
struct Progress {
  std::string prompt_token_ids;  // the original prompt's, as raw JSON: [1,2,3]
  std::string token_ids;         // all produced since, without brackets: 7,8,9
  std::int64_t produced = 0;     // how many those are
};

// One leg's part of a client's request: the input of dialects.
struct ClientCall {
  Api api;
  const wire::JsonObject& body;
  // The workers' name for the model, if the client used another one.
  std::string_view model = {};
  // A request for several choices or prompts is fanned out; this is one branch of it. `choice` is
  // its place among the n of its prompt (n becomes 1, a seed is counted up by it); `prompt` is the
  // raw JSON of its prompt where the client sent a list of them.
  std::optional<std::uint32_t> choice = {};
  std::string_view prompt = {};
  // The prompt as token ids, raw JSON: [1,2,3]; of a list of prompts that is not fanned out
  // [[1,2],[3]]. The leg carries them where its engine takes them. Empty: none.
  std::string_view token_ids = {};
  // Set when an answer is continued: the tokens so far become part of the prompt.
  const Progress* progress = nullptr;
  // Ask for token ids on Baton's own account, so that the answer can be continued elsewhere.
  bool with_token_ids = false;
  // Keeps the prompt's cache apart from that of others; the client's own word comes first.
  std::string_view cache_salt = {};
  // SGLang's `rid` for the leg; SGLang draws one if this is empty.
  LegName name = {};
  // Further members of the body that no worker gets.
  std::span<const std::string> stripped = {};
};

// Data a decode worker needs about a prefill worker before the prefill worker has answered.
struct PrefillPeer {
  std::string host;
  std::optional<std::uint16_t> bootstrap_port;  // SGLang (unknown: null is sent), Mooncake
  model::NixlPeer nixl;                         // NIXL push, engine_id already that of the rank
  std::string engine_id;                        // Mooncake: that of the rank
  std::string server_info;  // generation first: the worker's disaggregated_params, raw JSON
  bool remembered = false;  // from an earlier request: the worker may have begun anew since
};

// Identifies one hand-off; each dialect uses its part.
struct HandoffTicket {
  std::string request_id;  // X-Request-Id of both legs (NIXL push); Mooncake's transfer_id
  std::uint64_t disagg_request_id = 0;  // TensorRT-LLM: at least 2^40, unique
  std::uint64_t bootstrap_room = 0;     // SGLang: 1 … 2^63-1, unique, congruent to the rank
  PrefillPeer peer;
};

// Meaning of a prefill worker's answer for the request.
struct PrefillOutcome {
  // The request ended in the prefill already (end of text as first token, stop string …): this is
  // the client's answer, without hand-off fields.
  std::optional<std::string> final_answer;
  // Input of the decode leg: raw JSON exactly as the prefill worker wrote it. With a final answer,
  // input of a release. Empty: the prefill worker kept nothing and the decode worker computes the
  // prompt itself (with a final answer only, in the modes where both legs run together: their
  // decode legs need nothing from here).
  std::string handoff;
  // The worker was asked to keep the prompt's cache and computed the prompt, but wrote nothing
  // about it.
  bool unkept = false;
  std::string prompt_token_ids;
  std::optional<Usage> usage;  // what the prefill really reused
  std::string input_logprobs;  // SGLang: raw JSON, where the answer has them
  // NIXL push: the worker's identity, if the answer has it.
  std::optional<model::NixlPeer> peer = {};
};

// Whether the decode leg serves a client, or only takes the KV blocks off the prefill worker's
// hands.
enum class DecodePurpose { Answer, Release };

// How a decode leg ended that brought no answer.
struct DecodeEnd {
  enum class How : std::uint8_t {
    Unsent,    // the worker has not got the request, or would not have it now
    Closed,    // by Baton, also because it took too long
    Refused,   // by a status from 400 to 499
    Broken,    // by another status, a connection that ended, or an answer that is none
    Answered,  // in an answer that is whole: it begins when the last token is there
  };
  How how = How::Unsent;
  std::string error_type = {};                           // that the engine wrote with its status
  std::optional<model::Version> version = std::nullopt;  // of the worker
};

// Role. The wire format of one hand-off mode: the fields of each leg and the meaning of its prefill
//   answer. The order of the legs and the reaction are handoff's to decide.
// Confinement. Immutable, any thread.
class Dialect {
 public:
  virtual ~Dialect() = default;

  // False where the engine cannot hand this request over (beam search, prompt logprobs, echo …);
  // it is then served by one worker alone. Lists of prompts and n > 1 are no reason: they are
  // fanned out before.
  virtual bool can_hand_off(const ClientCall& call) const = 0;
  virtual wire::SplicedBody prefill_body(const ClientCall& call,
                                         const HandoffTicket& ticket) const = 0;
  virtual wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                        const PrefillOutcome& outcome,
                                        DecodePurpose purpose) const = 0;
  // The decode leg's hand-off object, where its engine can want it signed; empty elsewhere.
  virtual std::string signed_params(const HandoffTicket&, const PrefillOutcome&) const {
    return {};
  }
  // Every mode's prefill leg is asked for a whole answer, not a stream.
  virtual Result<PrefillOutcome> read_prefill_answer(const std::string& json) const = 0;
  // Whether the two workers free the prompt's blocks between themselves after a decode leg that
  // ended like this. A release would then ask for blocks that may be another request's.
  virtual bool frees_blocks(const DecodeEnd&) const { return false; }
};

const Dialect& dialect_of(model::HandoffMode mode);

// For a worker that does both phases: the client's body without hand-off fields a client may have
// put in.
wire::SplicedBody plain_body(const ClientCall& call, model::Engine engine);

// The first hand-off field in a client's body, for configurations that refuse such requests. A null
// value does not count, and does not hide another member of the same name.
std::optional<std::string_view> handoff_field_in(const wire::JsonObject& body);

}  // namespace baton::engine
