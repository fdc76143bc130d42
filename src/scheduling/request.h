// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/api.h"
#include "engine/shared/client_body.h"
#include "engine/shared/completion_json.h"
#include "fleet/fleet.h"
#include "scheduling/policy/hints.h"
#include "scheduling/policy/known_prompt.h"
#include "scheduling/queue/max_queue_wait.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::scheduling {

// Role. Knows a request's prompt, and is told which worker computes it.
// Confinement. The request's I/O thread.
class PromptObserver {
 public:
  virtual ~PromptObserver() = default;
  // The current knowledge of the prompt, and the ranks that hold its beginning.
  virtual std::shared_ptr<const KnownPrompt> known() const = 0;
  // The prompt is on its way there; again where another attempt is made.
  virtual void computing(const fleet::Booking& booking) = 0;
  // A prefill worker has answered, and reported its token counts.
  virtual void computed(const std::optional<engine::Usage>& usage) = 0;
};

// The scheduler's view of a request, or of one branch of it.
struct ScheduledRequest {
  std::shared_ptr<fleet::Model> model;
  engine::Api api;
  std::shared_ptr<const engine::ClientBody> body;
  std::string request_id;
  std::shared_ptr<const Hints> hints;
  // The adapter of the model that it is for; nothing: the model itself.
  std::optional<fleet::AdapterRequest> adapter = {};
  // Index of the branch, if the request was fanned out; see engine::ClientCall.
  std::optional<std::uint32_t> choice = {};
  std::string_view prompt = {};
  std::shared_ptr<PromptObserver> observer = {};  // null: the prompt is not followed
  std::uint64_t prompt_tokens = 0;                // an estimate where they were not counted
  // The answer is streamed, and could be continued on another worker.
  bool continuable = false;
  // When the router had read its head. Absent: when it asks for a worker.
  std::optional<std::chrono::steady_clock::time_point> received = {};
  // How long it may wait for a worker; absent: as configured.
  std::optional<MaxQueueWait> max_queue_wait = {};
  // The client's name (not its key), if known. Waiting clients share by it, unless the request
  // names its tenant.
  std::string client = {};
  // The worst tier that the workers it names may be in.
  fleet::EligibilityTier worst = fleet::EligibilityTier::Spare;
};

}  // namespace baton::scheduling
