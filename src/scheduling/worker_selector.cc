// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_selector.h"

#include "engine/shared/dialect.h"
#include "engine/shared/handoff_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <type_traits>
#include <utility>

namespace baton::scheduling {
namespace {

using model::Disaggregation;
using model::Role;

bool decode_may_prefill(const fleet::Pool& pool) {
  const auto decodes = pool.workers(Role::Decode).members();
  return !decodes->workers.empty() &&
         engine::rules_of(decodes->workers.front()->spec().mode()).decode_may_prefill;
}

// The role that serves a request alone, if there is no choice to make.
Role usual_alone_role(const fleet::Pool& pool) {
  return decode_may_prefill(pool) && pool.workers(Role::Aggregated).empty() ? Role::Decode
                                                                            : Role::Aggregated;
}

bool can_hand_off(const ScheduledRequest& request, const fleet::Pool& pool) {
  const auto decodes = pool.workers(Role::Decode).members();
  if (decodes->workers.empty()) return false;
  const engine::ClientCall call{.api = request.api,
                                .body = request.body->object(),
                                .choice = request.choice,
                                .prompt = request.prompt};
  return engine::dialect_of(decodes->workers.front()->spec().mode()).can_hand_off(call);
}

std::size_t count_available(const fleet::WorkerSet& set) {
  const fleet::Time now = fleet::Clock::now();
  const auto members = set.members();
  return static_cast<std::size_t>(std::ranges::count_if(members->workers, [now](const auto& one) {
    return one->tier(now) <= fleet::EligibilityTier::Spare;
  }));
}

// If a pool has workers of both kinds, each that answers gets an equal share; those that are down
// get none, unless all are.
bool takes_it(const fleet::Pool& pool, const Random& random) {
  if (pool.workers(Role::Decode).empty()) return true;
  std::size_t both = count_available(pool.workers(Role::Aggregated));
  std::size_t decodes = count_available(pool.workers(Role::Decode));
  if (both + decodes == 0) {
    both = pool.workers(Role::Aggregated).size();
    decodes = pool.workers(Role::Decode).size();
  }
  if (both + decodes == 0) return false;  // they have just left
  return random() % (decodes + both) < both;
}

const fleet::Worker& worker_of(const fleet::Booking& booking) { return booking.worker(); }
const fleet::Worker& worker_of(const Choice& choice) {
  return *choice.candidates[choice.picked].worker;
}

}  // namespace

WorkerSelector::WorkerSelector(const ScheduledRequest& request, const Random& random)
    : request_(request), random_(random), pool_(request.model->choose(*request.hints, random)) {
  const fleet::Model& model = *request.model;
  const fleet::Pool& pool = *pool_;
  const std::size_t decodes = pool.workers(Role::Decode).size();
  const std::size_t both = pool.workers(Role::Aggregated).size();
  const bool decode_alone = decode_may_prefill(pool);
  permissions_.required = model.disaggregation() == Disaggregation::Required;
  permissions_.decode_may_prefill = decode_alone || both > 0;
  permissions_.on_prefill_failure = model.on_prefill_failure();
  permissions_.retries = model.retries();
  permissions_.migrations = request.continuable ? model.migration() : 0;

  const bool pinned_to_both =
      request.hints->decode && pool.workers(Role::Aggregated).find(request.hints->decode->worker);
  const bool its_turn =
      both > 0 && !permissions_.required && !request.hints->decode && takes_it(pool, random);
  alone_role_ = pinned_to_both || its_turn || !decode_alone ? Role::Aggregated : Role::Decode;
  const bool possible =
      permissions_.required || (!pool.workers(Role::Prefill).empty() && decodes > 0);
  const bool wanted = model.disaggregation() != Disaggregation::Off && !pinned_to_both && !its_turn;
  permissions_.disaggregate =
      wanted && possible && (can_hand_off(request, pool) || !permissions_.decode_may_prefill);
  auto unknown = std::make_shared<KnownPrompt>();
  unknown->tokens = request.prompt_tokens;
  known_ = std::move(unknown);
}

void WorkerSelector::look_at_prompt() {
  looked_ = true;
  const auto weighs = [this](Role role) { return scores_prompts(pool_->workers(role).policy()); };
  const bool wanted = permissions_.disaggregate ? weighs(Role::Prefill) || weighs(Role::Decode)
                                                : weighs(alone_role_);
  if (!wanted || !request_.observer) return;
  if (auto known = request_.observer->known()) known_ = std::move(known);
}

bool WorkerSelector::streams() const {
  return request_.body && request_.body->object().find_bool("stream").value_or(false);
}

const fleet::WorkerSet& WorkerSelector::first_workers() const {
  return pool_->workers(hands_off() ? Role::Prefill : alone_role_);
}

const Pin* WorkerSelector::first_pin() const {
  const auto& pin = hands_off() ? request_.hints->prefill : request_.hints->decode;
  return pin ? &*pin : nullptr;
}

std::optional<RankId> WorkerSelector::session_rank() const {
  const std::string& session = request_.hints->session_id;
  AffinityTable& sessions = request_.model->affinity(hands_off() ? Role::Prefill : alone_role_);
  return session.empty() || !sessions.enabled() ? std::nullopt : sessions.find(session);
}

template <class Take>
auto WorkerSelector::ask(Role role, WorkerRequirements requirements, Take take) {
  const std::string& session = request_.hints->session_id;
  AffinityTable& sessions = request_.model->affinity(role);
  if (!session.empty() && sessions.enabled()) requirements.affinity = sessions.find(session);
  auto taken = take(requirements);
  // A worker that failed others, or did not answer lately, may do better now; a request without an
  // alternative asks it. If prefill is required, its absence is an answer, too.
  const bool another_way =
      role == Role::Prefill && permissions_.decode_may_prefill && !permissions_.required;
  const bool absence_is_told = role == Role::Prefill && permissions_.required;
  for (const auto worse : {fleet::EligibilityTier::Doubtful, fleet::EligibilityTier::Down}) {
    if (taken || another_way || taken.error().code() != Errc::NoWorkers) break;
    if (worse == fleet::EligibilityTier::Down && absence_is_told) break;
    requirements.worst = worse;
    // A busy worker can be waited for.
    auto last = take(requirements);
    if (last || last.error().code() == Errc::WorkersBusy) taken = std::move(last);
  }
  return taken;
}

WorkerSelector::Attempt WorkerSelector::book(Role role, WorkerRequirements requirements,
                                             AffinityTable::Lease& lease) {
  fleet::WorkerSet& workers = pool_->workers(role);
  const Part part = requirements.part;
  std::optional<Choice> choice;
  unbind_ = nullptr;
  auto booking =
      ask(role, std::move(requirements), [&](const WorkerRequirements& asked) -> Attempt {
        auto booked = scheduling::book(
            workers, asked, random_,
            {.explain = bool(page_), .count_arrival = !asked.busy || !arrival_counted_});
        if (asked.busy && (booked ? booked->arrival_counted : booked.error().arrival_counted))
          arrival_counted_ = true;
        if (!booked) return std::unexpected(std::move(booked.error()));
        choice = std::move(booked->choice);
        return std::move(booked->booking);
      });
  if (booking && page_) {
    page_.chosen({.part = part,
                  .attempt = attempt_,
                  .at = std::chrono::system_clock::now(),
                  .choice = std::move(*choice)});
  }
  const std::string& session = request_.hints->session_id;
  AffinityTable& sessions = request_.model->affinity(role);
  if (booking && !session.empty() && sessions.enabled()) {
    const auto before = sessions.find(session);
    lease = sessions.bind(session, booking->rank_id());
    if (request_.hints->session_final) sessions.unbind(session);
    unbind_ = [&sessions, &session, &lease, before, bound = booking->rank_id()] {
      if (sessions.find(session) != bound)
        return;  // another request of the session is bound elsewhere
      lease = before ? sessions.bind(session, *before) : AffinityTable::Lease();
      if (!before) sessions.unbind(session);
    };
  }
  return booking;
}

void WorkerSelector::given_back(std::string_view why) {
  page_.given_back(why);
  if (const auto unbind = std::exchange(unbind_, nullptr)) unbind();
}

std::expected<Choice, NotBooked> WorkerSelector::look(Role role, WorkerRequirements requirements) {
  const fleet::WorkerSet& workers = pool_->workers(role);
  return ask(role, std::move(requirements),
             [&](const WorkerRequirements& asked) { return peek(workers, asked, random_); });
}

template <class Take>
auto WorkerSelector::first_that_can_be_followed(const std::optional<BusyThreshold>& busy,
                                                Take take) {
  WorkerRequirements requirements = prefill_requirements();
  requirements.busy = busy;
  auto taken = followed(requirements, take);
  const bool spared = requirements.excluded.size() > failures_.prefills().size();
  if (taken || !spared || taken.error().code() == Errc::WorkersBusy) return taken;
  // No decode worker can follow those that were preferred to a suspected one.
  requirements.excluded = failures_.prefills();
  return followed(std::move(requirements), take);
}

template <class Take>
auto WorkerSelector::followed(WorkerRequirements requirements, Take take) {
  const fleet::WorkerSet& decodes = pool_->workers(Role::Decode);
  std::optional<Error> unfit;  // why the one before had to be passed over
  while (true) {
    auto taken = take(requirements);
    using Taken = decltype(taken);
    constexpr bool kBooks = std::is_same_v<Taken, Attempt>;
    // The request waits for a busy worker, even behind one that cannot be followed.
    if (!taken && (!unfit || taken.error().code() == Errc::WorkersBusy)) return taken;
    if (!taken) return Taken(fail(std::move(*unfit)));
    const fleet::Worker& worker = worker_of(*taken);
    const auto give_back = [&](const Error& why) {
      if constexpr (kBooks) {
        taken->withdraw();
        given_back(why.message());
      }
      return Taken(fail(why));
    };
    // Nothing is sent before it is known that the other half can follow.
    const auto transfer = transfer_constraints(worker.spec());
    if (!transfer) return give_back(transfer.error());
    prefill_ = worker.id();
    mode_ = worker.spec().mode();
    transfer_ = *transfer;
    WorkerRequirements second = decode_requirements();
    if (!request_.hints->session_id.empty())
      second.affinity = request_.model->affinity(Role::Decode).find(request_.hints->session_id);
    second.worst = std::max(request_.worst, fleet::EligibilityTier::Doubtful);
    if (can_serve(decodes, second)) return taken;
    // Blocks kept for a worker that does not answer would stay pinned. If none are kept, a decode
    // worker that was away may be back.
    if (!engine::rules_of(*mode_).keeps_blocks) second.worst = fleet::EligibilityTier::Down;
    const auto follower = peek(decodes, second, random_);
    if (follower) return taken;
    auto refused = give_back(follower.error());
    if (requirements.pin || follower.error().code() == Errc::InvalidRouting) return refused;
    unfit = Error(Errc::NoEligibleWorker, follower.error().message())
                .with_retry_after(std::chrono::seconds(1));
    requirements.excluded.push_back(worker.id());
  }
}

WorkerRequirements WorkerSelector::requirements_for(Role role) const {
  WorkerRequirements requirements = scheduling::requirements_for(role, *request_.hints);
  requirements.prompt = known_;
  requirements.worst = request_.worst;
  requirements.adapter = request_.adapter;
  if (!request_.hints->cost.empty())
    requirements.cost = request_.hints->cost.over(request_.model->routing().cost);
  return requirements;
}

// A request that names one worker means the one that answers; in a hand-off that is not the prefill
// worker, which then is chosen as always.
WorkerRequirements WorkerSelector::prefill_requirements() const {
  WorkerRequirements requirements = requirements_for(Role::Prefill);
  requirements.part = Part::Prefill;
  const bool only_one_named = requirements.pin && request_.hints->decode &&
                              requirements.pin->worker == request_.hints->decode->worker &&
                              !pool_->workers(Role::Prefill).find(requirements.pin->worker);
  if (only_one_named) requirements.pin.reset();
  pass_over(requirements, pool_->workers(Role::Prefill), failures_.suspected_prefills(),
            failures_.prefills());
  return requirements;
}

void WorkerSelector::pass_over(WorkerRequirements& requirements, const fleet::WorkerSet& workers,
                               Excluded suspected, Excluded surely) const {
  const bool same = suspected.size() == surely.size();
  requirements.excluded = std::move(suspected);
  if (!same && !can_serve(workers, requirements)) requirements.excluded = std::move(surely);
}

void WorkerSelector::move_to(const std::shared_ptr<fleet::Pool>& pool, Role alone_role) {
  pool_ = pool;
  alone_role_ = alone_role;
}

// If the namespace it began in has no workers left, another one may.
template <class Find>
auto WorkerSelector::anywhere(Find find) {
  auto found = find();
  const bool none_here = !found && (found.error().code() == Errc::NoWorkers ||
                                    found.error().code() == Errc::NoEligibleWorker);
  if (!none_here) return found;
  const auto pools = request_.model->pools();
  const auto home = pool_;
  const Role role_at_home = alone_role_;
  for (const auto& other : *pools) {
    if (other == home) continue;
    move_to(other, usual_alone_role(*other));
    auto elsewhere = find();
    if (elsewhere || elsewhere.error().code() == Errc::WorkersBusy) return elsewhere;
  }
  move_to(home, role_at_home);
  return found;
}

WorkerSelector::Attempt WorkerSelector::prefill(const std::optional<BusyThreshold>& busy) {
  if (!looked_) look_at_prompt();
  looked_ = false;
  return anywhere([&] {
    return first_that_can_be_followed(busy, [this](const WorkerRequirements& requirements) {
      return book(Role::Prefill, requirements, prefill_lease_);
    });
  });
}

bool WorkerSelector::passes_by_prefill(const Error& why) const {
  return why.code() == Errc::NoWorkers && !permissions_.required && permissions_.decode_may_prefill;
}

std::expected<Choice, NotBooked> WorkerSelector::look_first(
    const std::optional<BusyThreshold>& busy) {
  if (permissions_.disaggregate) {
    auto prefill = first_that_can_be_followed(busy, [this](const WorkerRequirements& requirements) {
      return look(Role::Prefill, requirements);
    });
    if (prefill || !passes_by_prefill(prefill.error())) return prefill;
  }
  WorkerRequirements requirements = alone_requirements();
  requirements.busy = busy;
  return look(alone_role_, requirements);
}

Result<WorkerSelector::Preview> WorkerSelector::preview() {
  Preview preview;
  look_at_prompt();
  if (auto bypass = preview_bypass(preview.bypass)) {
    preview.decode = std::move(*bypass);
    preview.bypasses = true;
    return preview;
  }
  if (permissions_.disaggregate) {
    auto prefill = first_that_can_be_followed({}, [this](const WorkerRequirements& requirements) {
      return look(Role::Prefill, requirements);
    });
    if (!prefill && !passes_by_prefill(prefill.error())) return fail(std::move(prefill.error()));
    if (prefill) {
      preview.mode = mode_;
      preview.prefill = std::move(*prefill);
    }
  }
  auto decode = preview.mode ? look(Role::Decode, decode_requirements())
                             : look(alone_role_, alone_requirements());
  if (!decode) return fail(std::move(decode.error()));
  preview.decode = std::move(*decode);
  return preview;
}

WorkerRequirements WorkerSelector::decode_requirements() const {
  WorkerRequirements requirements = requirements_for(Role::Decode);
  requirements.part = Part::Decode;
  requirements.mode = mode_;
  requirements.constraints.merge(transfer_);
  pass_over(requirements, pool_->workers(Role::Decode), failures_.suspected_decodes(),
            prefill_ ? failures_.decodes_beside(*prefill_) : failures_.decodes());
  return requirements;
}

WorkerSelector::Attempt WorkerSelector::decode() {
  return book(Role::Decode, decode_requirements(), decode_lease_);
}

WorkerRequirements WorkerSelector::alone_requirements() const {
  WorkerRequirements requirements = requirements_for(alone_role_);
  requirements.observed = streams();
  // Without the prefill worker that it could not work with, a decode worker may do.
  const bool falls_back = permissions_.on_prefill_failure == model::OnPrefillFailure::Fallback;
  pass_over(requirements, pool_->workers(alone_role_), failures_.suspected_decodes(),
            falls_back ? failures_.decodes() : failures_.suspected_decodes());
  return requirements;
}

WorkerSelector::Attempt WorkerSelector::alone(const std::optional<BusyThreshold>& busy) {
  if (!looked_) look_at_prompt();
  looked_ = false;
  return anywhere([&] {
    WorkerRequirements requirements = alone_requirements();
    requirements.busy = busy;
    return book(alone_role_, requirements, decode_lease_);
  });
}

Result<fleet::Booking> WorkerSelector::releaser(fleet::Pool& pool, model::HandoffMode mode,
                                                const Constraints& transfer,
                                                const Excluded& excluded) const {
  fleet::WorkerSet& decodes = pool.workers(Role::Decode);
  WorkerRequirements requirements;
  requirements.whatever_policy = true;
  requirements.part = Part::Decode;
  requirements.mode = mode;
  requirements.constraints = transfer;
  requirements.adapter = request_.adapter;
  requirements.excluded = excluded;
  auto booking = scheduling::book(decodes, requirements, random_);
  requirements.excluded.clear();
  if (!booking) booking = scheduling::book(decodes, requirements, random_);
  // Even a draining worker will do.
  requirements.worst = fleet::EligibilityTier::Out;
  if (!booking) booking = scheduling::book(decodes, requirements, random_);
  if (!booking) return fail(std::move(booking.error()));
  return std::move(booking->booking);
}

void WorkerSelector::prefill_failed(const fleet::Worker& worker) {
  failures_.prefill_failed(worker.id());
  unbind(Role::Prefill);
}

void WorkerSelector::decode_failed(const fleet::Worker& worker) {
  failures_.decode_failed(worker.id());
  unbind(Role::Decode);
}

void WorkerSelector::handoff_failed(const fleet::Worker& decode, bool misled) {
  failures_.handoff_failed(*prefill_, decode.id(), misled);
  unbind(Role::Decode);
}

void WorkerSelector::unbind(Role role) {
  const std::string& session = request_.hints->session_id;
  if (!session.empty()) request_.model->affinity(role).unbind(session);
}

}  // namespace baton::scheduling
