// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_decoder.h"

#include "kvcache/events/event_fields.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace baton::kvcache {
namespace {

using Kind = wire::MsgpackReader::Kind;
using wire::MsgpackReader;

std::unexpected<Error> no_batch(const MsgpackReader& reader, std::string_view why) {
  return fail(Errc::EngineProtocol, fmt::format("a KV event batch cannot be read: {} (at byte {})",
                                                why, reader.position()));
}
std::unexpected<Error> broken(const MsgpackReader& reader) {
  return no_batch(reader, "it is cut off or no msgpack");
}

struct NamedField {
  std::string_view name;
  Field field;
};
constexpr std::array kNamedFields = std::to_array<NamedField>({
    {"type", Field::Type},
    {"block_hashes", Field::BlockHashes},
    {"parent_block_hash", Field::Parent},
    {"token_ids", Field::TokenIds},
    {"block_size", Field::BlockSize},
    {"lora_id", Field::LoraId},
    {"medium", Field::Medium},
    {"lora_name", Field::LoraName},
    {"extra_keys", Field::ExtraKeys},
    {"group_idx", Field::Group},
    {"kv_cache_spec_kind", Field::SpecKind},
    {"kv_cache_spec_sliding_window", Field::SlidingWindow},
    {"locality", Field::Locality},
    {"ownership", Field::Ownership},
    {"session_id", Field::SessionId},
    {"cache_salt", Field::CacheSalt},
    {"block_mm_infos", Field::MultimodalInfos},
});

constexpr std::array kStoredFields = std::to_array<Field>(
    {Field::BlockHashes, Field::Parent, Field::TokenIds, Field::BlockSize, Field::LoraId,
     Field::Medium, Field::LoraNameOrMetadata, Field::ExtraKeys, Field::Group, Field::SpecKind,
     Field::SlidingWindow, Field::Locality, Field::Ownership});
constexpr std::array kRemovedFields = std::to_array<Field>(
    {Field::BlockHashes, Field::Medium, Field::Group, Field::Locality, Field::Ownership});
// From here on older publishers put the fields of images in between.
constexpr std::size_t kStoredTail = 8;

// A name's place in the table. No two of the names above share one: if a new name does, choose
// another factor.
constexpr std::size_t kPlaces = 64;
constexpr std::size_t place_of(std::string_view name) {
  const auto first = static_cast<unsigned char>(name.front());
  return (name.size() + std::size_t{6} * first + static_cast<unsigned char>(name.back())) % kPlaces;
}

constexpr std::array<NamedField, kPlaces> kByPlace = [] {
  std::array<NamedField, kPlaces> table{};
  for (NamedField& empty : table) empty.field = Field::Unknown;
  for (const NamedField& known : kNamedFields) {
    NamedField& place = table[place_of(known.name)];
    if (!place.name.empty()) throw "two names have the same place";  // does not compile
    place = known;
  }
  return table;
}();

Field field_of(std::string_view name) {
  if (name.empty()) return Field::Unknown;
  const NamedField& known = kByPlace[place_of(name)];
  return known.name == name ? known.field : Field::Unknown;
}

std::optional<Event::Type> type_of(std::string_view tag) {
  if (tag == "BlockStored") return Event::Type::Stored;
  if (tag == "BlockRemoved") return Event::Type::Removed;
  if (tag == "AllBlocksCleared") return Event::Type::Cleared;
  return std::nullopt;
}

void skip(MsgpackReader& reader, std::uint32_t values) {
  for (; values > 0 && !reader.broken(); --values) reader.skip();
}

// An event without the fields that it is about says nothing.
Decoded outcome(const MsgpackReader& reader, const FieldReader& fields, const Event& event) {
  if (reader.broken()) return Decoded::Broken;
  if (fields.too_large()) return Decoded::TooLarge;
  const bool complete = event.type == Event::Type::Cleared ||
                        (fields.has(Field::BlockHashes) &&
                         (event.type == Event::Type::Removed ||
                          (fields.has(Field::TokenIds) && fields.has(Field::BlockSize))));
  return fields.malformed() || !complete ? Decoded::Malformed : Decoded::Event;
}

Decoded decode_array(MsgpackReader& reader, Event& event) {
  const auto count = reader.read_array();
  if (!count) return Decoded::Broken;
  if (*count == 0) return Decoded::Malformed;
  std::uint32_t left = *count - 1;
  const auto tag = reader.read_text();
  const auto type = tag ? type_of(*tag) : std::nullopt;
  if (!type) {
    skip(reader, tag ? left : left + 1);
    if (reader.broken()) return Decoded::Broken;
    return tag ? Decoded::UnknownType : Decoded::Malformed;
  }
  event.type = *type;
  FieldReader fields(reader, event);
  const std::span<const Field> positions =
      *type == Event::Type::Stored    ? std::span<const Field>(kStoredFields)
      : *type == Event::Type::Removed ? std::span<const Field>(kRemovedFields)
                                      : std::span<const Field>();
  for (std::size_t at = 0; left > 0 && !reader.broken(); --left) {
    const bool in_tail = *type == Event::Type::Stored && at >= kStoredTail;
    if (at >= positions.size()) {
      reader.skip();
    } else if (in_tail && reader.kind() == Kind::Array) {
      fields.read(Field::MultimodalInfos);
    } else {
      fields.read(positions[at++]);
    }
  }
  return outcome(reader, fields, event);
}

Decoded decode_map(MsgpackReader& reader, Event& event) {
  const auto count = reader.read_map();
  if (!count) return Decoded::Broken;
  event.named_fields = true;
  FieldReader fields(reader, event);
  std::optional<std::string_view> tag;
  for (std::uint32_t left = *count; left > 0 && !reader.broken(); --left) {
    const auto name = reader.read_text();
    if (!name) {
      skip(reader, 2);
      continue;
    }
    const Field field = field_of(*name);
    if (field == Field::Type) {
      tag = reader.read_text();
      if (!tag) skip(reader, 1);
    } else {
      fields.read(field);
    }
  }
  if (reader.broken()) return Decoded::Broken;
  if (!tag) return Decoded::Malformed;
  const auto type = type_of(*tag);
  if (!type) return Decoded::UnknownType;
  event.type = *type;
  return outcome(reader, fields, event);
}

// The events that are, byte for byte, the one that began at `begin`, but for the name of its block.
void take_like(MsgpackReader& reader, std::size_t begin, Event& event, std::uint32_t most) {
  const auto head = reader.between(begin, event.hashes_begin);
  const auto tail = reader.between(event.hashes_end, reader.position());
  while (event.events < most && event.hashes.size() < kMostHashes) {
    const std::size_t before = reader.position();
    const auto hash = reader.take(head) ? reader.read_integer() : std::nullopt;
    if (!hash || !reader.take(tail)) return reader.rewind(before);
    event.hashes.push_back(*hash);
    ++event.events;
  }
}

}  // namespace

Result<BatchOpening> open_batch(MsgpackReader& reader) {
  const auto count = reader.read_array();
  if (reader.broken()) return broken(reader);
  if (!count || *count < 2) return no_batch(reader, "it is no list of a time and events");
  const auto timestamp = reader.read_number();
  if (reader.broken()) return broken(reader);
  if (!timestamp) return no_batch(reader, "its time is no number");
  const auto events = reader.read_array();
  if (reader.broken()) return broken(reader);
  if (!events) return no_batch(reader, "its events are no list");
  return BatchOpening{.timestamp = *timestamp, .events = *events, .rest = *count - 2};
}

Result<std::optional<std::uint32_t>> close_batch(MsgpackReader& reader,
                                                 const BatchOpening& opening) {
  std::optional<std::uint32_t> rank;
  if (opening.rest > 0 && !reader.read_nil()) {
    const auto number = reader.read_unsigned();
    if (reader.broken()) return broken(reader);
    if (!number || *number > std::numeric_limits<std::uint32_t>::max())
      return no_batch(reader, "its rank is no number of a rank");
    rank = static_cast<std::uint32_t>(*number);
  }
  if (opening.rest > 1) skip(reader, opening.rest - 1);
  if (reader.broken()) return broken(reader);
  if (!reader.at_end()) return no_batch(reader, "there is something behind it");
  return rank;
}

Decoded decode_event(MsgpackReader& reader, Event& event) {
  event.reset();
  switch (reader.kind()) {
    case Kind::Array:
      return decode_array(reader, event);
    case Kind::Map:
      return decode_map(reader, event);
    default:
      return reader.skip() ? Decoded::Malformed : Decoded::Broken;
  }
}

Decoded decode_events(MsgpackReader& reader, Event& event, std::uint32_t most) {
  const std::size_t begin = reader.position();
  const Decoded outcome = decode_event(reader, event);
  if (outcome == Decoded::Event && event.type == Event::Type::Removed && event.hashes.size() == 1)
    take_like(reader, begin, event, most);
  return outcome;
}

}  // namespace baton::kvcache
