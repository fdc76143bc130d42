// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/handoff_rules.h"

#include <array>
#include <cstddef>

namespace baton::engine {
namespace {

using model::HandoffMode;

// clang-format off
constexpr std::array kModes{
    //        mode                          order                   keeps  may    alone  in     abandoned
    //                                                              blocks answer        doubt
    ModeRules{HandoffMode::NixlPull,        LegOrder::PrefillFirst, true,  true,  true,  false, WhenAbandoned::Complete},
    ModeRules{HandoffMode::NixlPush,        LegOrder::Together,     true,  true,  true,  false, WhenAbandoned::AwaitPrefill},
    ModeRules{HandoffMode::Mooncake,        LegOrder::Together,     true,  true,  true,  true,  WhenAbandoned::Complete},
    ModeRules{HandoffMode::Bootstrap,       LegOrder::Together,     false, false, false, true,  WhenAbandoned::DropDecode},
    ModeRules{HandoffMode::ContextFirst,    LegOrder::PrefillFirst, true,  true,  true,  true,  WhenAbandoned::Complete},
    ModeRules{HandoffMode::GenerationFirst, LegOrder::Together,     true,  true,  true,  true,  WhenAbandoned::Complete},
};
// clang-format on

consteval bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i].mode != static_cast<HandoffMode>(i)) return false;
  }
  return kModes.size() == static_cast<std::size_t>(HandoffMode::GenerationFirst) + 1;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::span<const ModeRules> mode_table() { return kModes; }

const ModeRules& rules_of(HandoffMode mode) { return kModes[static_cast<std::size_t>(mode)]; }

}  // namespace baton::engine
