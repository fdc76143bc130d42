// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/request_body.h"

#include "tools/loadgen/draw.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace baton::loadgen {
namespace {

using Speaker = Piece::Speaker;

constexpr std::uint32_t kFirstId = 256;  // below stand special tokens and single bytes

constexpr std::array<std::string_view, 128> kWords{
    "time",    "year",   "people",      "way",       "day",         "man",        "thing",
    "woman",   "life",   "child",       "world",     "school",      "state",      "family",
    "student", "group",  "country",     "problem",   "hand",        "part",       "place",
    "case",    "week",   "company",     "system",    "program",     "question",   "work",
    "number",  "night",  "point",       "home",      "water",       "room",       "mother",
    "area",    "money",  "story",       "fact",      "month",       "lot",        "right",
    "study",   "book",   "eye",         "job",       "word",        "business",   "issue",
    "side",    "kind",   "head",        "house",     "service",     "friend",     "father",
    "power",   "hour",   "game",        "line",      "end",         "member",     "law",
    "car",     "city",   "name",        "president", "team",        "minute",     "idea",
    "kid",     "body",   "information", "back",      "parent",      "face",       "others",
    "level",   "office", "door",        "health",    "person",      "art",        "war",
    "history", "party",  "result",      "change",    "morning",     "reason",     "research",
    "girl",    "guy",    "moment",      "air",       "teacher",     "force",      "education",
    "foot",    "boy",    "age",         "policy",    "music",       "market",     "sense",
    "nation",  "plan",   "college",     "interest",  "death",       "experience", "effect",
    "use",     "class",  "control",     "field",     "development", "role",       "effort",
    "rate",    "heart",  "drug",        "show",      "leader",      "light",      "voice",
    "wife",    "police"};

void append_number(std::string& out, std::uint32_t number) {
  std::array<char, 10> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// Appends the piece as JSON text, without quotes.
void append_piece(std::string& out, const Piece& piece) {
  if (piece.text) {
    const std::string quoted = wire::json_quote(*piece.text);
    out.append(quoted, 1, quoted.size() - 2);
    return;
  }
  for (std::uint32_t i = 0; i < piece.tokens; ++i) {
    out += ' ';
    out += word_of(piece.key, i);
  }
}

std::string_view role_of(Speaker speaker) {
  switch (speaker) {
    case Speaker::System:
      return "system";
    case Speaker::User:
      return "user";
    case Speaker::Assistant:
      break;
  }
  return "assistant";
}

}  // namespace

std::uint32_t token_of(std::uint64_t key, std::uint32_t index, std::uint32_t vocabulary) {
  return kFirstId + static_cast<std::uint32_t>(mixed(key + index) % (vocabulary - kFirstId));
}

std::string_view word_of(std::uint64_t key, std::uint32_t index) {
  return kWords[mixed(key + index) % kWords.size()];
}

RequestBody::RequestBody(const Plan& plan, std::string_view model)
    : api_(plan.options.api),
      prompt_(plan.prompt),
      vocabulary_(plan.options.vocabulary),
      end_(fmt::format(R"(,"model":{},"stream":true,"stream_options":{{"include_usage":true}})",
                       wire::json_quote(model))),
      natural_end_(plan.options.natural_end) {
  // The ids of an answer, to go on with in the next turn.
  const bool talk = plan.options.workload.kind == WorkloadKind::MultiTurn;
  if (talk && prompt_ == PromptKind::Tokens) end_ += R"(,"return_token_ids":true)";
}

std::string RequestBody::write(std::span<const Piece> said, std::uint32_t output_tokens) const {
  std::size_t tokens = 0;
  for (const Piece& piece : said) tokens += piece.tokens;
  std::string out;
  out.reserve(256 + 7 * tokens);
  if (api_ == Api::Chat) {
    write_messages(out, said);
  } else if (prompt_ == PromptKind::Tokens) {
    write_ids(out, said);
  } else {
    write_text(out, said);
  }
  out += end_;
  fmt::format_to(std::back_inserter(out), R"(,"{}":{})",
                 api_ == Api::Chat ? "max_completion_tokens" : "max_tokens", output_tokens);
  if (!natural_end_) out += R"(,"ignore_eos":true)";
  out += '}';
  return out;
}

void RequestBody::write_ids(std::string& out, std::span<const Piece> said) const {
  out += R"({"prompt":[)";
  bool first = true;
  const auto add = [&out, &first](std::uint32_t id) {
    if (!first) out += ',';
    first = false;
    append_number(out, id);
  };
  for (const Piece& piece : said) {
    if (!piece.ids.empty()) {
      for (const std::uint32_t id : piece.ids) add(id);
      continue;
    }
    for (std::uint32_t i = 0; i < piece.tokens; ++i) add(token_of(piece.key, i, vocabulary_));
  }
  out += ']';
}

void RequestBody::write_text(std::string& out, std::span<const Piece> said) const {
  out += R"({"prompt":")";
  for (const Piece& piece : said) append_piece(out, piece);
  out += '"';
}

void RequestBody::write_messages(std::string& out, std::span<const Piece> said) const {
  out += R"({"messages":[)";
  for (std::size_t i = 0; i < said.size(); ++i) {
    // Pieces of one speaker are one message.
    if (i == 0 || said[i].speaker != said[i - 1].speaker) {
      if (i > 0) out += R"("},)";
      fmt::format_to(std::back_inserter(out), R"({{"role":"{}","content":")",
                     role_of(said[i].speaker));
    }
    append_piece(out, said[i]);
  }
  out += R"("}])";
}

}  // namespace baton::loadgen
