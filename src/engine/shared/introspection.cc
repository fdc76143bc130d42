// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/introspection.h"

#include "wire/json_array.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

namespace baton::engine {
namespace {

// Far more than an engine has, and little enough to keep for every worker.
constexpr std::size_t kMostCards = 4096;
constexpr std::size_t kLongestName = 1024;

std::unexpected<Error> malformed(std::string_view document, std::string_view why) {
  return fail(Errc::EngineProtocol, fmt::format("{}: {}", document, why));
}

template <typename Number>
std::optional<Number> positive(std::optional<std::int64_t> number) {
  if (!number || *number <= 0 || std::cmp_greater(*number, std::numeric_limits<Number>::max()))
    return std::nullopt;
  return static_cast<Number>(*number);
}

// Role. One JSON document, read member by member; the first one that is too long to keep is
//   remembered.
// Lifetime. Inside one function.
class Document {
 public:
  Document(std::string_view name, const wire::JsonObject& object) : name_(name), object_(object) {}

  std::string text(std::string_view key) {
    std::string value = object_.find_string(key).value_or("");
    if (value.size() <= kLongestName) return value;
    if (too_long_.empty()) too_long_ = key;
    return {};
  }
  template <typename Number>
  std::optional<Number> count(std::string_view key) const {
    return positive<Number>(object_.find_integer(key));
  }
  Result<void> result() const {
    if (too_long_.empty()) return {};
    return malformed(name_, fmt::format("{} has more than {} bytes", too_long_, kLongestName));
  }

 private:
  std::string_view name_;
  const wire::JsonObject& object_;
  std::string too_long_;
};

Result<wire::JsonObject> parse(std::string_view document, std::string_view json) {
  auto object = wire::JsonObject::parse(json);
  if (!object) return malformed(document, "the answer is no JSON object");
  return object;
}

std::optional<model::Engine> engine_of_owner(std::string_view owner) {
  if (owner == "vllm") return model::Engine::Vllm;
  if (owner == "sglang") return model::Engine::Sglang;
  if (owner == "tensorrt_llm") return model::Engine::Trtllm;
  return std::nullopt;
}

bool is_wildcard(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "::" || host == "[::]";
}

Result<void> read_kv_events(const wire::JsonObject& object, Facts& facts) {
  Document document("GET /server_info, kv_events", object);
  Facts::KvEvents events;
  events.publisher = document.text("publisher");
  events.topic = document.text("topic");
  events.endpoint.host = document.text("endpoint_host");
  if (is_wildcard(events.endpoint.host)) events.endpoint.host.clear();
  events.endpoint.port = document.count<std::uint16_t>("endpoint_port_base").value_or(0);
  events.replay_port = document.count<std::uint16_t>("replay_endpoint_port_base").value_or(0);
  // This one counts in context parallelism, which page_size does not.
  if (const auto size = document.count<std::uint32_t>("block_size")) facts.block_size = size;
  const bool publishes = !events.publisher.empty() && events.publisher != "null";
  if (publishes && events.endpoint.port != 0) facts.kv_events = std::move(events);
  return document.result();
}

// Replicas times the groups of attention: --enable-dp-attention moves its ranks from the first to
// the second (0.5.23), and older releases have only the first.
std::optional<std::uint32_t> sglang_ranks(const Document& document) {
  const auto replicas = document.count<std::uint32_t>("dp_size");
  const auto groups = document.count<std::uint32_t>("attn_dp_size");
  if (!replicas || !groups) return replicas ? replicas : groups;
  const std::uint64_t ranks = std::uint64_t{*replicas} * *groups;
  if (ranks > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(ranks);
}

// Parsers of models whose chats SGLang writes with code, whatever their template.
constexpr std::string_view kCodedParsers[] = {"deepseekv32", "deepseekv4", "deepseekv41",
                                              "kimi_k3"};

// Paths of models for which SGLang has its own template, unless it is given one. Some newer models
// of these families use theirs after all: for those only Baton's ids are lost.
constexpr std::string_view kTemplatesByPath[] = {
    "points",       "moss",      "internvl",  "janus",     "vicuna",
    "llava",        "vl2",       "minicpm-v", "minicpm-o", "phi-4-multimodal",
    "deepseek-ocr", "unlimited", "paddleocr", "whisper"};

// A template that was given as a file is one that Baton can be given, too.
bool renders_in_code(std::string_view chat_template, std::string_view tool_call_parser,
                     std::string model_path) {
  if (!chat_template.empty() && !chat_template.ends_with(".jinja")) return true;
  for (char& c : model_path) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool by_path =
      chat_template.empty() && std::ranges::any_of(kTemplatesByPath, [&](std::string_view name) {
        return model_path.find(name) != std::string::npos;
      });
  if (by_path) return true;
  return std::ranges::find(kCodedParsers, tool_call_parser) != std::end(kCodedParsers);
}

// ---- Prometheus text ----

constexpr std::string_view kMetrics = "GET /metrics";
constexpr std::size_t kMostRanks = 4096;

// Reads a quoted label value at the start of `rest` and moves `rest` past it.
std::optional<std::string> take_quoted(std::string_view& rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  std::string value;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    if (rest[i] == '\\' && ++i == rest.size()) break;
    value += rest[i];
  }
  return std::nullopt;
}

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// name{label="value",…} value; nothing where the line is not so.
std::optional<Labels> labels_of(std::string_view line) {
  Labels labels;
  const auto open = line.find('{');
  if (open == line.npos) return labels;
  std::string_view rest = line.substr(open + 1);
  while (!rest.starts_with('}')) {
    const auto equals = rest.find('=');
    if (equals == rest.npos) return std::nullopt;
    const std::string_view name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    auto value = take_quoted(rest);
    if (!value) return std::nullopt;
    labels.emplace_back(name, std::move(*value));
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  return labels;
}

const std::string* find(const Labels& labels, std::string_view name) {
  const auto found = std::ranges::find(labels, name, [](const auto& label) { return label.first; });
  return found == labels.end() ? nullptr : &found->second;
}

template <typename Number>
std::optional<Number> count_of(const Labels& labels, std::string_view name) {
  const std::string* text = find(labels, name);
  if (text == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (problem != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return positive<Number>(number);
}

void read_cache_config(const Labels& labels, Facts& facts) {
  if (const auto size = count_of<std::uint32_t>(labels, "block_size")) facts.block_size = size;
  const auto blocks = count_of<std::uint32_t>(labels, "num_gpu_blocks");
  if (!blocks || !facts.block_size) return;
  if (const auto tokens = std::uint64_t{*blocks} * *facts.block_size;
      tokens <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    facts.max_total_tokens = static_cast<std::int64_t>(tokens);
}

}  // namespace

std::string asked_for_as(const Facts& facts, const Facts::Card& card) {
  if (facts.engine != model::Engine::Sglang || card.parent.empty()) return card.id;
  return fmt::format("{}:{}", card.parent, card.id);
}

const Facts::Card* find_card(const Facts& facts, std::string_view model) {
  auto found = std::ranges::find(facts.models, model, &Facts::Card::id);
  if (found == facts.models.end()) {
    found = std::ranges::find_if(
        facts.models, [&](const Facts::Card& card) { return asked_for_as(facts, card) == model; });
  }
  return found == facts.models.end() ? nullptr : &*found;
}

std::vector<std::string> adapter_names(const Facts& facts, std::string_view model) {
  std::vector<std::string> names;
  for (const Facts::Card& card : facts.models) {
    if (card.parent.empty()) continue;
    std::string name = asked_for_as(facts, card);
    if (name == model) return {};
    names.push_back(std::move(name));
  }
  return names;
}

Result<void> read_model_cards(std::string_view json, Facts& facts) {
  constexpr std::string_view kDocument = "GET /v1/models";
  const auto object = parse(kDocument, json);
  if (!object) return fail(object.error());
  const auto data = object->find("data");
  if (!data || !data->starts_with('[')) return malformed(kDocument, "data is no list");
  const auto cards = wire::elements(*data, kMostCards + 1);
  if (cards.size() > kMostCards)
    return malformed(kDocument, fmt::format("there are more than {} models", kMostCards));
  for (const std::string_view text : cards) {
    const auto card = wire::JsonObject::within(text);
    if (!card) return malformed(kDocument, "an entry of data is no object");
    Document document(kDocument, *card);
    Facts::Card read{.id = document.text("id"),
                     .parent = document.text("parent"),
                     .max_model_len = document.count<std::int64_t>("max_model_len")};
    if (!facts.engine) facts.engine = engine_of_owner(document.text("owned_by"));
    if (auto kept = document.result(); !kept) return kept;
    if (read.id.empty()) return malformed(kDocument, "a model has no id");
    facts.models.push_back(std::move(read));
  }
  return {};
}

Result<void> read_version(std::string_view json, Facts& facts) {
  constexpr std::string_view kDocument = "GET /version";
  const auto object = parse(kDocument, json);
  if (!object) return fail(object.error());
  Document document(kDocument, *object);
  facts.version = document.text("version");
  return document.result();
}

Result<void> read_sglang_server_info(std::string_view json, Facts& facts) {
  constexpr std::string_view kDocument = "GET /server_info";
  const auto object = parse(kDocument, json);
  if (!object) return fail(object.error());
  Document document(kDocument, *object);
  facts.version = document.text("version");
  facts.data_parallel_size = sglang_ranks(document);
  facts.block_size = document.count<std::uint32_t>("page_size");
  facts.bootstrap_port = document.count<std::uint16_t>("disaggregation_bootstrap_port");
  facts.max_total_tokens = document.count<std::int64_t>("max_total_num_tokens");
  facts.max_running_requests = document.count<std::int64_t>("max_running_requests");
  facts.chats_in_code =
      renders_in_code(document.text("chat_template"), document.text("tool_call_parser"),
                      document.text("model_path"));
  if (object->has("disaggregation_mode")) {
    if (!facts.engine) facts.engine = model::Engine::Sglang;
    const std::string mode = document.text("disaggregation_mode");
    facts.role = mode == "null" ? model::Role::Aggregated : model::parse_role(mode);
  }
  // Fallback if the model cards need a key that this document does not.
  if (std::string name = document.text("served_model_name"); facts.models.empty() && !name.empty())
    facts.models.push_back({.id = std::move(name), .parent = {}, .max_model_len = {}});
  if (auto kept = document.result(); !kept) return kept;
  const auto events = object->find_object("kv_events");
  return events ? read_kv_events(*events, facts) : Result<void>();
}

// "logit_bias must has keys in [0, 151935], got -1."
void read_sglang_refusal(std::string_view json, Facts& facts) {
  constexpr std::string_view kBefore = "keys in [0, ";
  const auto found = json.find(kBefore);
  if (found == json.npos) return;
  const std::string_view rest = json.substr(found + kBefore.size());
  std::uint32_t last = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), last);
  const bool closed = end != rest.data() + rest.size() && *end == ']';
  if (problem != std::errc() || !closed || last >= (std::uint32_t{1} << 31) || last == 0) return;
  facts.vocabulary_size = last + 1;
}

Result<void> read_trtllm_server_info(std::string_view json, Facts& facts) {
  constexpr std::string_view kDocument = "GET /server_info";
  const auto object = parse(kDocument, json);
  if (!object) return fail(object.error());
  Document document(kDocument, *object);
  facts.kv_cache_hash_algo = document.text("kv_cache_hash_algo");
  return document.result();
}

void read_vllm_tokenize_refusal(std::string_view json, Facts& facts) {
  facts.ids_only = json.find("skip_tokenizer_init") != json.npos;
}

Result<void> read_vllm_metrics(std::string_view text, Facts& facts) {
  std::vector<std::string> ranks;
  bool nixl = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    nixl = nixl || line.starts_with("vllm:nixl_");
    const bool config = line.starts_with("vllm:cache_config_info{");
    if (!config && !line.starts_with("vllm:num_requests_running{")) continue;
    const auto labels = labels_of(line);
    if (!labels) return malformed(kMetrics, "a series has broken labels");
    if (!facts.engine) facts.engine = model::Engine::Vllm;
    if (config) read_cache_config(*labels, facts);
    if (const std::string* rank = find(*labels, "engine")) ranks.push_back(*rank);
    if (ranks.size() > 2 * kMostRanks) return malformed(kMetrics, "there are too many engines");
  }
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  if (ranks.empty()) return {};
  facts.data_parallel_size = static_cast<std::uint32_t>(ranks.size());
  facts.nixl = nixl;
  return {};
}

}  // namespace baton::engine
