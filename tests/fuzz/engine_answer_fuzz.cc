// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/choice_merge.h"
#include "engine/shared/completion_json.h"
#include "engine/shared/dialect.h"
#include "engine/shared/engine_error.h"
#include "engine/shared/stream_continuity.h"
#include "engine/shared/stream_event.h"
#include "engine/shared/usage_merge.h"
#include "fuzz/fuzz_input.h"
#include "wire/json_object.h"
#include "wire/sse_reader.h"

#include <string>

namespace {

using namespace baton;
using fuzz::require;

void check_prefill_answer(model::HandoffMode mode, const std::string& answer) {
  const auto outcome = engine::dialect_of(mode).read_prefill_answer(answer);
  if (!outcome) return;
  if (outcome->final_answer) {
    require(wire::JsonObject::parse(*outcome->final_answer).has_value(), "a final answer is JSON");
  }
  if (outcome->handoff.empty() && outcome->prompt_token_ids.empty()) return;
  // Whatever an engine wrote, what the other worker gets is one JSON object.
  const std::string client = R"({"model":"m","prompt":"p"})";
  const auto object = wire::JsonObject::parse(client);
  const engine::ClientCall call{engine::Api::Completions, *object};
  for (const auto purpose : {engine::DecodePurpose::Answer, engine::DecodePurpose::Release}) {
    const std::string body =
        engine::dialect_of(mode).decode_body(call, {}, *outcome, purpose).joined();
    require(wire::JsonObject::parse(body).has_value(), "a decode leg's body is JSON");
  }
}

void check_event_stream(engine::Api api, const std::string& answer) {
  const auto stream = engine::as_event_stream(api, answer, engine::IncludeUsage::Yes);
  if (!stream) return;
  wire::SseReader reader(64 * 1024 * 1024);
  reader.feed(*stream);
  bool done = false;
  while (const auto event = reader.next()) {
    require(!done, "nothing follows [DONE]");
    const auto kind = engine::read_stream_event(event->data).kind;
    require(kind == engine::StreamEvent::Kind::Chunk || kind == engine::StreamEvent::Kind::Done,
            "every event is sound");
    done = kind == engine::StreamEvent::Kind::Done;
  }
  require(done && reader.held() == 0, "a stream ends with [DONE]");
}

// What clients get of an engine's chunk is JSON again, whatever was changed in it.
void check_rewriters(const std::string& chunk) {
  const auto require_json = [](const std::string& text) {
    require(wire::JsonObject::parse(text).has_value(), "a rewritten text is JSON");
  };
  const engine::Usage prefill{.prompt_tokens = 5,
                              .completion_tokens = 1,
                              .cached_tokens = 4,
                              .prompt_details = R"({"cached_tokens":4,"new":{"a":1}})"};
  for (const auto form : {engine::AnswerForm::Whole, engine::AnswerForm::Streamed}) {
    if (const auto text = engine::rewrite_usage(chunk, prefill, form)) require_json(*text);
    if (const auto text = engine::rewrite_usage(chunk, engine::Usage{}, form)) require_json(*text);
  }
  if (const auto text = engine::merge_input_logprobs(chunk, "[1]")) require_json(*text);
  if (const auto merged = engine::renumber(chunk, 3, "id"); merged && !merged->json.empty())
    require_json(merged->json);
  if (const auto merged = engine::merge_whole({chunk, chunk}, 2)) require_json(*merged);

  const std::string client = R"({"stream":true,"stream_options":{"include_usage":true}})";
  const auto body = wire::JsonObject::parse(client);
  engine::StreamContinuity stream({engine::Api::Chat, *body});
  for (int worker = 0; worker < 2; ++worker) {
    const auto passage = stream.pass(chunk);
    if (passage.kind == engine::StreamContinuity::Passage::Kind::Changed)
      require_json(passage.event.substr(6));
    if (stream.why_not()) break;
    if (const auto* progress = stream.progress()) {
      engine::ClientCall call{engine::Api::Chat, *body};
      call.progress = progress;
      require_json(engine::plain_body(call, model::Engine::Vllm).joined());
    }
    stream.resume();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const std::string answer(input.bytes);
  for (const auto mode : {model::HandoffMode::NixlPull, model::HandoffMode::NixlPush,
                          model::HandoffMode::Mooncake, model::HandoffMode::Bootstrap,
                          model::HandoffMode::ContextFirst, model::HandoffMode::GenerationFirst}) {
    check_prefill_answer(mode, answer);
  }
  check_rewriters(answer);
  check_event_stream(engine::Api::Chat, answer);
  check_event_stream(engine::Api::Completions, answer);

  const int status = 100 + static_cast<int>(input.seed % 500);
  const Error error = engine::read_engine_error(status, answer, input.bytes.substr(0, 8));
  require(!error.message().empty() && error.http_status() >= 400, "an error says something");
  for (const auto begun : {engine::StreamBegun::No, engine::StreamBegun::Yes})
    require(!engine::read_stream_error(answer, begun).message().empty(), "a stream's error too");
  engine::read_stream_event(answer);
  return 0;
}
