// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/feed.h"

#include <utility>

namespace baton::kvcache {

std::string_view to_string(Skipped reason) {
  switch (reason) {
    case Skipped::UnknownType:
      return "unknown_type";
    case Skipped::Malformed:
      return "malformed";
    case Skipped::TooLarge:
      return "too_large";
    case Skipped::UnknownMedium:
      return "unknown_medium";
    case Skipped::NotLocal:
      return "not_local";
    case Skipped::Owned:
      return "owned";
    case Skipped::NotMainAttention:
      return "not_main_attention";
    case Skipped::UnknownGroup:
      return "unknown_group";
    case Skipped::BlockSize:
      return "block_size";
    case Skipped::UnknownParent:
      return "unknown_parent";
    case Skipped::UnknownBlock:
      return "unknown_block";
    case Skipped::AmbiguousSalt:
      return "ambiguous_salt";
    case Skipped::NoRoom:
      return "no_room";
  }
  std::unreachable();
}

std::string_view to_string(FeedState state) {
  switch (state) {
    case FeedState::Waiting:
      return "waiting";
    case FeedState::Live:
      return "live";
    case FeedState::Unconfirmed:
      return "unconfirmed";
    case FeedState::Replaying:
      return "replaying";
    case FeedState::Gap:
      return "gap";
    case FeedState::Broken:
      return "broken";
  }
  std::unreachable();
}

}  // namespace baton::kvcache
