// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// How much work texts of clients and workers make on an I/O thread: no more than their size is worth,
// whatever is in them. Longer ones than these go to the CPU threads (net::CpuPool::kInPlace), and so
// does, whatever its length, a whole answer that is made into a stream.
#include "engine/shared/choice_merge.h"
#include "engine/shared/client_body.h"
#include "engine/shared/dialect.h"
#include "engine/shared/engine_error.h"
#include "engine/shared/peer_directory.h"
#include "engine/shared/stream_continuity.h"
#include "engine/shared/stream_event.h"
#include "engine/shared/tokenize_request.h"
#include "engine/shared/usage_merge.h"
#include "fuzz/executed_work.h"
#include "fuzz/fuzz_input.h"
#include "http_client/request_head.h"
#include "pipeline/forwarding.h"
#include "pipeline/given_ids.h"
#include "scheduling/policy/hints.h"
#include "wire/http_parser.h"
#include "wire/sse_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace baton;
using fuzz::WorkBound;

constexpr std::size_t kLargest = std::size_t{64} * 1024;
constexpr std::array kModes{model::HandoffMode::NixlPull,     model::HandoffMode::NixlPush,
                            model::HandoffMode::Mooncake,     model::HandoffMode::Bootstrap,
                            model::HandoffMode::ContextFirst, model::HandoffMode::GenerationFirst};
constexpr std::array kEngines{model::Engine::Vllm, model::Engine::Sglang, model::Engine::Trtllm};
constexpr std::array kApis{engine::Api::Chat, engine::Api::Completions};
const std::string kNothing = "{}";

// A client's connection, from its first byte to the head that a worker gets.
void read_request(std::string_view bytes) {
  wire::RequestParser parser({.header_bytes = kLargest, .body_bytes = kLargest});
  bool understood = false;
  {
    const WorkBound bound("reading a request", bytes.size());
    while (!bytes.empty()) {
      const auto [consumed, status] = parser.feed(bytes);
      bytes.remove_prefix(consumed);
      understood = understood || status == wire::ParseStatus::HeadDone;
      if (status == wire::ParseStatus::Failed || status == wire::ParseStatus::Done) break;
    }
  }
  if (!understood) return;
  const wire::Headers& headers = parser.head().headers;
  std::size_t size = 0;
  for (std::size_t i = 0; i < headers.size(); ++i)
    size += headers[i].name.size() + headers[i].value.size() + 3;
  const WorkBound bound("understanding a head", size);
  const std::vector<std::string> stripped{"x-vllm-*", "x-priority"};
  const auto passed =
      pipeline::headers_for_worker(headers, pipeline::ForwardAuthorization::Yes, stripped);
  pipeline::headers_for_client(headers);
  http_client::request_head("POST", "/", "h", passed, 1);
  const auto nothing = wire::JsonObject::parse(kNothing);
  (void)scheduling::read_hints(headers, *nothing, scheduling::Trusted::Yes);
}

void make_legs(const engine::ClientCall& call) {
  const engine::HandoffTicket ticket;
  const engine::PrefillOutcome outcome{.final_answer = {},
                                       .handoff = R"({"a":1})",
                                       .prompt_token_ids = "[1]",
                                       .usage = {},
                                       .input_logprobs = {}};
  for (const auto mode : kModes) {
    const WorkBound bound("making the bodies of two legs", call.body.text().size());
    const engine::Dialect& dialect = engine::dialect_of(mode);
    dialect.can_hand_off(call);
    dialect.prefill_body(call, ticket);
    dialect.decode_body(call, ticket, outcome, engine::DecodePurpose::Answer);
  }
  for (const auto one : kEngines) {
    const WorkBound bound("making the body of one leg", call.body.text().size());
    engine::plain_body(call, one);
  }
}

void read_body(std::string_view bytes) {
  Result<std::shared_ptr<const engine::ClientBody>> body = nullptr;
  {
    const WorkBound bound("parsing a body", bytes.size());
    body = engine::ClientBody::parse(std::string(bytes));
  }
  if (!body) return;
  const wire::JsonObject& object = (*body)->object();
  {
    const WorkBound bound("finding hints in a body", bytes.size());
    (void)scheduling::read_hints({}, object, scheduling::Trusted::Yes);
    (void)engine::handoff_field_in(object);
  }
  for (const auto api : kApis) {
    const engine::ClientCall call{.api = api, .body = object};
    {
      const WorkBound bound("understanding a body", bytes.size());
      engine::wants_greedy_choices(object);
      engine::wants_input_logprobs(object);
      (void)engine::branches_of(api, object);
      if (pipeline::given_ids_bytes(api, object) > 0)
        (void)pipeline::check_given_ids(api, object, 1000);
      const engine::StreamContinuity continuity(call);
    }
    make_legs(call);
    for (const auto one : kEngines) {
      const WorkBound bound("asking for tokens", bytes.size());
      for (const auto route : {engine::TokenRoute::Render, engine::TokenRoute::Tokenize})
        (void)engine::token_question(call, one, route);
    }
  }
}

void read_answer(std::string_view bytes) {
  const std::string answer(bytes);
  for (const auto mode : kModes) {
    const WorkBound bound("reading a prefill's answer", bytes.size());
    (void)engine::dialect_of(mode).read_prefill_answer(answer);
  }
  {
    const WorkBound bound("reading token ids", bytes.size());
    (void)engine::read_token_ids(answer);
  }
  {
    const WorkBound bound("reading an error", bytes.size());
    (void)engine::read_engine_error(400, answer, {});
    (void)engine::read_stream_error(answer, engine::StreamBegun::No);
    (void)engine::error_type_of(answer);
    (void)engine::nixl_peer_in(answer);
  }
  {
    const WorkBound bound("merging choices", bytes.size());
    (void)engine::merge_whole({answer, answer}, 2);
  }
}

void read_event(std::string_view data, engine::StreamContinuity& continuity) {
  const std::string json(data);
  const engine::Usage prefill{.prompt_tokens = 5,
                              .completion_tokens = 1,
                              .cached_tokens = 4,
                              .prompt_details = R"({"cached_tokens":4,"new":{"a":1}})"};
  {
    const WorkBound bound("judging an event", data.size());
    engine::read_stream_event(data);
  }
  {
    const WorkBound bound("rewriting an event", data.size());
    (void)engine::rewrite_usage(data, prefill, engine::AnswerForm::Streamed);
    (void)engine::merge_input_logprobs(data, R"({"tokens":["a"],"token_logprobs":[null]})");
  }
  {
    const WorkBound bound("renumbering an event", data.size());
    (void)engine::renumber(data, 3, "id");
  }
  const WorkBound bound("continuing a stream", data.size());
  continuity.pass(data);
}

// A worker's stream, as one read may bring it.
void read_stream(std::string_view bytes) {
  std::string wire(bytes);
  wire::ResponseParser parser(kLargest);
  {
    const WorkBound bound("reading an answer", bytes.size());
    std::span<char> rest(wire);
    while (!rest.empty()) {
      const auto progress = parser.feed(rest);
      rest = rest.subspan(progress.consumed);
      if (progress.status == wire::ParseStatus::Failed ||
          progress.status == wire::ParseStatus::Done)
        break;
    }
  }
  const auto body = wire::JsonObject::parse(kNothing);
  engine::StreamContinuity continuity({.api = engine::Api::Chat, .body = *body});
  wire::SseReader reader;
  std::vector<std::string> events;
  {
    const WorkBound bound("cutting a stream into events", bytes.size());
    reader.feed(bytes);
    while (const auto event = reader.next()) {
      if (!event->data.empty()) events.emplace_back(event->data);
    }
  }
  for (const std::string& data : events) read_event(data, continuity);
  continuity.resume();
  for (const std::string& data : events) read_event(data, continuity);
}

constexpr std::array kReaders{read_request, read_body, read_answer, read_stream};

// `part` again and again, up to the largest text that is gone through in place.
std::string filled(std::string_view begin, std::string_view part, std::string_view end) {
  std::string text(begin);
  while (text.size() + part.size() + end.size() < kLargest) text += part;
  return text.append(end);
}

// Texts of the largest size that are all of one kind of thing, which a fuzzer takes long to make.
void check_shapes() {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const std::string_view field :
       {"a:\r\n", "Connection: a\r\n", "Connection: a,b,c,d,e,f,g\r\nx:\r\n", "x-dp-rank: 1\r\n",
        "x-required-taints: a\r\n"})
    read_request(filled(head, field, "\r\n"));
  read_request(filled(head + "Connection: a", ",a", "\r\n\r\n"));
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string_view chunk : {"1\r\nx\r\n", "1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n"})
    read_request(filled(chunked, chunk, "0\r\n\r\n"));
  const std::array<std::pair<std::string_view, std::string_view>, 12> arrays{
      {{R"({"stop":["")", R"(,"\\\"\n")"},
       {R"({"messages":[1)", R"(,[[]],{})"},
       {R"({"prompt":[[1])", ",[1]"},
       {R"({"prompt":["a")", R"(,"a")"},
       {R"({"prompt":[1)", ",1"},
       {R"({"nvext":{"annotations":[1)", ",1"},
       {R"({"kv_transfer_params":{"a":[1)", ",{\"b\":1}"},
       {R"({"choices":[{})", R"(,{"finish_reason":"length"})"},
       {R"({"choices":[{"finish_reason":"stop","logprobs":{"tokens":[1)", ",1"},
       {R"({"choices":[{"finish_reason":"stop","message":{"tool_calls":[{})", ",{}"},
       {R"({"usage":[1)", ",{}"},
       {R"({"answer":[1)", ",1e5"}}};
  const std::array<std::pair<std::string_view, std::string_view>, 9> objects{
      {{R"({"a":1)", R"(,"a":1)"},
       {R"({"\u0061":1)", R"(,"\u0061":1)"},
       {R"({"messages":[],"n":128,"x":1)", R"(,"n":1)"},
       {R"({"a":1e9)", R"(,"b":111111111111111111111111111111)"},
       {R"({"usage":{"prompt_tokens_details":{"x":1)", R"(,"y":1)"},
       {R"({"usage":{"prompt_tokens_details":{"x":{"y":1)", R"(,"z":1)"},
       {R"({"choices":[{"finish_reason":"stop","message":{"x":1)", R"(,"y":1)"},
       {R"({"kv_transfer_params":{"x":1)", R"(,"lmcache.y":1)"},
       {R"({"vllm_xargs":{"x":1)", R"(,"y":1)"}}};
  const auto closed = [](std::string_view begin, std::string_view part) {
    std::string end;
    std::vector<char> open;
    bool in_string = false;
    for (const char c : begin) {
      if (c == '"') in_string = !in_string;
      if (in_string) continue;
      if (c == '{') open.push_back('}');
      if (c == '[') open.push_back(']');
      if (c == '}' || c == ']') open.pop_back();
    }
    end.assign(open.rbegin(), open.rend());
    return filled(begin, part, end);
  };
  std::vector<std::string> texts;
  for (const auto& [begin, part] : arrays) texts.push_back(closed(begin, part));
  for (const auto& [begin, part] : objects) texts.push_back(closed(begin, part));
  std::string names = "{\"a\":1";
  for (std::size_t i = 0; names.size() < kLargest - 16 && i < 4090; ++i)
    names += ",\"k" + std::to_string(i) + "\":1";
  texts.push_back(names + "}");
  std::string details = R"({"choices":[],"usage":{"prompt_tokens_details":{"a":{"b":1)";
  for (std::size_t i = 0; details.size() < kLargest - 16; ++i)
    details += ",\"" + std::to_string(i) + "\":1";
  texts.push_back(details + "}}}}");
  std::string message = R"({"choices":[{"finish_reason":"stop","message":{"b":1)";
  for (std::size_t i = 0; message.size() < kLargest - 16; ++i)
    message += ",\"" + std::to_string(i) + "\":1";
  texts.push_back(message + "}}]}");
  texts.push_back(filled("{\"a\":", "[", ""));
  texts.push_back(filled("{\"a\":", "{\"a\":", ""));
  texts.push_back(filled("{\"a\":\"", "\\u00e9\\n", "\"}"));
  texts.push_back(filled("", "remote_host'\":", ""));
  for (const std::string& text : texts) {
    read_body(text);
    read_answer(text);
    read_stream("data: " + text + "\n\n");
  }
  for (const std::string_view event :
       {"\n", "\r", ":\n\n", "data\n", "data: {}\n\n", "data: {\"choices\":[{}]}\n\n",
        "data: {\"choices\":[{\"token_ids\":[1],\"delta\":{\"content\":\"a\"}}]}\n\n"})
    read_stream(filled("", event, ""));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  check_shapes();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  kReaders[input.seed % kReaders.size()](input.bytes);
  return 0;
}
