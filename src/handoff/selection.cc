// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/selection.h"

#include "engine/shared/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <type_traits>
#include <utility>

namespace baton::handoff {
namespace {

using model::Disaggregation;
using model::Role;

bool decode_may_prefill(const fleet::Pool& pool) {
  const auto decodes = pool.workers(Role::Decode).members();
  return !decodes->workers.empty() &&
         rules_of(decodes->workers.front()->spec().mode()).decode_may_prefill;
}

// Who serves a request alone, where there is no choice to make.
Role usual_alone_role(const fleet::Pool& pool) {
  return decode_may_prefill(pool) && pool.workers(Role::Aggregated).empty() ? Role::Decode
                                                                            : Role::Aggregated;
}

bool can_hand_off(const Job& job, const fleet::Pool& pool) {
  const auto decodes = pool.workers(Role::Decode).members();
  if (decodes->workers.empty()) return false;
  const engine::ClientCall call{
      .api = job.api, .body = job.body->object(), .choice = job.choice, .prompt = job.prompt};
  return engine::dialect_of(decodes->workers.front()->spec().mode()).can_hand_off(call);
}

std::size_t count_available(const fleet::WorkerSet& set) {
  const fleet::Time now = fleet::Clock::now();
  const auto members = set.members();
  return static_cast<std::size_t>(std::ranges::count_if(members->workers, [now](const auto& one) {
    return one->standing(now) <= fleet::Standing::Spare;
  }));
}

// Where a pool has workers of both kinds, each that answers gets an equal share; those that are
// down get none, unless all are.
bool takes_it(const fleet::Pool& pool, const fleet::Random& random) {
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
const fleet::Worker& worker_of(const fleet::Choice& choice) {
  return *choice.candidates[choice.picked].worker;
}

}  // namespace

Selection::Selection(const Job& job, const fleet::Random& random)
    : job_(job), random_(random), pool_(job.model->choose(*job.hints, random)) {
  const fleet::Model& model = *job.model;
  const fleet::Pool& pool = *pool_;
  const std::size_t decodes = pool.workers(Role::Decode).size();
  const std::size_t both = pool.workers(Role::Aggregated).size();
  const bool decode_alone = decode_may_prefill(pool);
  policy_.required = model.disaggregation() == Disaggregation::Required;
  policy_.decode_may_prefill = decode_alone || both > 0;
  policy_.on_prefill_failure = model.on_prefill_failure();
  policy_.retries = model.retries();
  policy_.migrations = job.continuable ? model.migration() : 0;

  const bool pinned_to_both =
      job.hints->decode && pool.workers(Role::Aggregated).find(job.hints->decode->worker);
  const bool its_turn =
      both > 0 && !policy_.required && !job.hints->decode && takes_it(pool, random);
  alone_role_ = pinned_to_both || its_turn || !decode_alone ? Role::Aggregated : Role::Decode;
  const bool possible = policy_.required || (!pool.workers(Role::Prefill).empty() && decodes > 0);
  const bool wanted = model.disaggregation() != Disaggregation::Off && !pinned_to_both && !its_turn;
  policy_.disaggregate =
      wanted && possible && (can_hand_off(job, pool) || !policy_.decode_may_prefill);
  auto unknown = std::make_shared<fleet::KnownPrompt>();
  unknown->tokens = job.prompt_tokens;
  known_ = std::move(unknown);
}

void Selection::look_at_prompt() {
  looked_ = true;
  const auto weighs = [this](Role role) {
    return fleet::weighs_prompts(pool_->workers(role).policy());
  };
  const bool wanted =
      policy_.disaggregate ? weighs(Role::Prefill) || weighs(Role::Decode) : weighs(alone_role_);
  if (!wanted || !job_.observer) return;
  if (auto known = job_.observer->known()) known_ = std::move(known);
}

bool Selection::streams() const {
  return job_.body && job_.body->object().find_bool("stream").value_or(false);
}

const fleet::WorkerSet& Selection::first_workers() const {
  return pool_->workers(hands_off() ? Role::Prefill : alone_role_);
}

const scheduling::Pin* Selection::first_pin() const {
  const auto& pin = hands_off() ? job_.hints->prefill : job_.hints->decode;
  return pin ? &*pin : nullptr;
}

std::optional<scheduling::Seat> Selection::first_seat() const {
  const std::string& session = job_.hints->session_id;
  scheduling::AffinityTable& sessions =
      job_.model->affinity(hands_off() ? Role::Prefill : alone_role_);
  return session.empty() || !sessions.enabled() ? std::nullopt : sessions.find(session);
}

template <class Take>
auto Selection::ask(Role role, fleet::Wish wish, Take take) {
  const std::string& session = job_.hints->session_id;
  scheduling::AffinityTable& sessions = job_.model->affinity(role);
  if (!session.empty() && sessions.enabled()) wish.affinity = sessions.find(session);
  auto taken = take(wish);
  // Somebody who failed others, or did not answer lately, may do better now; a request that has no
  // other way asks. Where prefill is required, its absence is an answer, too.
  const bool another_way = role == Role::Prefill && policy_.decode_may_prefill && !policy_.required;
  const bool absence_is_told = role == Role::Prefill && policy_.required;
  for (const auto worse : {fleet::Standing::Doubtful, fleet::Standing::Down}) {
    if (taken || another_way || taken.error().code() != Errc::NoWorkers) break;
    if (worse == fleet::Standing::Down && absence_is_told) break;
    wish.worst = worse;
    // Whoever is busy now can be waited for.
    auto last = take(wish);
    if (last || last.error().code() == Errc::WorkersBusy) taken = std::move(last);
  }
  return taken;
}

Result<fleet::Booking> Selection::book(Role role, fleet::Wish wish,
                                       scheduling::AffinityTable::Lease& lease) {
  fleet::WorkerSet& workers = pool_->workers(role);
  const fleet::Part part = wish.part;
  fleet::Choice choice;
  unseat_ = nullptr;
  auto booking = ask(role, std::move(wish), [&](const fleet::Wish& asked) {
    return workers.book(asked, random_, page_ ? &choice : nullptr);
  });
  if (booking && page_) {
    page_.chosen({.part = part,
                  .attempt = attempt_,
                  .at = std::chrono::system_clock::now(),
                  .choice = std::move(choice)});
  }
  const std::string& session = job_.hints->session_id;
  scheduling::AffinityTable& sessions = job_.model->affinity(role);
  if (booking && !session.empty() && sessions.enabled()) {
    const auto before = sessions.find(session);
    lease = sessions.bind(session, booking->seat());
    if (job_.hints->session_final) sessions.unbind(session);
    unseat_ = [&sessions, &session, &lease, before, bound = booking->seat()] {
      if (sessions.find(session) != bound) return;  // another request of the session sits elsewhere
      lease = before ? sessions.bind(session, *before) : scheduling::AffinityTable::Lease();
      if (!before) sessions.unbind(session);
    };
  }
  return booking;
}

void Selection::given_back(std::string_view why) {
  page_.given_back(why);
  if (const auto unseat = std::exchange(unseat_, nullptr)) unseat();
}

Result<fleet::Choice> Selection::look(Role role, fleet::Wish wish) {
  const fleet::WorkerSet& workers = pool_->workers(role);
  return ask(role, std::move(wish),
             [&](const fleet::Wish& asked) { return workers.peek(asked, random_); });
}

template <class Take>
auto Selection::first_that_can_be_followed(const std::optional<fleet::BusyLine>& busy, Take take) {
  fleet::Wish wish = prefill_wish();
  wish.busy = busy;
  auto taken = followed(wish, take);
  const bool spared = wish.excluded.size() > blame_.prefills().size();
  if (taken || !spared || taken.error().code() == Errc::WorkersBusy) return taken;
  // Nobody can follow those that were preferred to a suspected one.
  wish.excluded = blame_.prefills();
  return followed(std::move(wish), take);
}

template <class Take>
auto Selection::followed(fleet::Wish wish, Take take) {
  const fleet::WorkerSet& decodes = pool_->workers(Role::Decode);
  std::optional<Error> unfit;  // why the one before had to be passed over
  while (true) {
    auto taken = take(wish);
    using Taken = decltype(taken);
    constexpr bool kBooks = std::is_same_v<Taken, Result<fleet::Booking>>;
    // Who is busy behind one that cannot be followed is waited for.
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
    const auto transfer = scheduling::transfer_constraints(worker.spec());
    if (!transfer) return give_back(transfer.error());
    prefill_ = worker.id();
    mode_ = worker.spec().mode();
    transfer_ = *transfer;
    fleet::Wish second = decode_wish();
    if (!job_.hints->session_id.empty())
      second.affinity = job_.model->affinity(Role::Decode).find(job_.hints->session_id);
    second.worst = std::max(job_.worst, fleet::Standing::Doubtful);
    if (decodes.can_serve(second)) return taken;
    // What is kept for somebody who does not answer would stay pinned. Where nothing is kept, a
    // decode worker that was away may be back.
    if (!rules_of(*mode_).keeps_blocks) second.worst = fleet::Standing::Down;
    const auto follower = decodes.peek(second, random_);
    if (follower) return taken;
    auto refused = give_back(follower.error());
    if (wish.pin || follower.error().code() == Errc::InvalidRouting) return refused;
    unfit = Error(Errc::NoEligibleWorker, follower.error().message())
                .with_retry_after(std::chrono::seconds(1));
    wish.excluded.push_back(worker.id());
  }
}

fleet::Wish Selection::wish_for(Role role) const {
  fleet::Wish wish = fleet::wish_for(role, *job_.hints);
  wish.prompt = known_;
  wish.worst = job_.worst;
  wish.adapter = job_.adapter;
  if (!job_.hints->cost.empty()) wish.cost = job_.hints->cost.over(job_.model->routing().cost);
  return wish;
}

// A request that names one worker means the one that answers; in a hand-off that is not the prefill
// worker, which then is chosen as always.
fleet::Wish Selection::prefill_wish() const {
  fleet::Wish wish = wish_for(Role::Prefill);
  wish.part = fleet::Part::Prefill;
  const bool only_one_named = wish.pin && job_.hints->decode &&
                              wish.pin->worker == job_.hints->decode->worker &&
                              !pool_->workers(Role::Prefill).find(wish.pin->worker);
  if (only_one_named) wish.pin.reset();
  pass_over(wish, pool_->workers(Role::Prefill), blame_.suspected_prefills(), blame_.prefills());
  return wish;
}

void Selection::pass_over(fleet::Wish& wish, const fleet::WorkerSet& workers,
                          fleet::Excluded suspected, fleet::Excluded surely) const {
  const bool same = suspected.size() == surely.size();
  wish.excluded = std::move(suspected);
  if (!same && !workers.can_serve(wish)) wish.excluded = std::move(surely);
}

void Selection::move_to(const std::shared_ptr<fleet::Pool>& pool, Role alone_role) {
  pool_ = pool;
  alone_role_ = alone_role;
}

// Where nobody is left in the namespace it began in, another one may have somebody.
template <class Find>
auto Selection::anywhere(Find find) {
  auto found = find();
  const bool nobody_here = !found && (found.error().code() == Errc::NoWorkers ||
                                      found.error().code() == Errc::NoEligibleWorker);
  if (!nobody_here) return found;
  const auto pools = job_.model->pools();
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

Result<fleet::Booking> Selection::prefill(const std::optional<fleet::BusyLine>& busy) {
  if (!looked_) look_at_prompt();
  looked_ = false;
  return anywhere([&] {
    return first_that_can_be_followed(busy, [this](const fleet::Wish& wish) {
      return book(Role::Prefill, wish, prefill_lease_);
    });
  });
}

bool Selection::passes_by_prefill(const Error& why) const {
  return why.code() == Errc::NoWorkers && !policy_.required && policy_.decode_may_prefill;
}

Result<fleet::Choice> Selection::look_first(const std::optional<fleet::BusyLine>& busy) {
  if (policy_.disaggregate) {
    auto prefill = first_that_can_be_followed(
        busy, [this](const fleet::Wish& wish) { return look(Role::Prefill, wish); });
    if (prefill || !passes_by_prefill(prefill.error())) return prefill;
  }
  fleet::Wish wish = alone_wish();
  wish.busy = busy;
  return look(alone_role_, wish);
}

Result<Selection::Preview> Selection::preview() {
  Preview preview;
  look_at_prompt();
  if (auto bypass = preview_bypass(preview.bypass)) {
    preview.decode = std::move(*bypass);
    preview.bypasses = true;
    return preview;
  }
  if (policy_.disaggregate) {
    auto prefill = first_that_can_be_followed(
        {}, [this](const fleet::Wish& wish) { return look(Role::Prefill, wish); });
    if (!prefill && !passes_by_prefill(prefill.error())) return fail(std::move(prefill.error()));
    if (prefill) {
      preview.mode = mode_;
      preview.prefill = std::move(*prefill);
    }
  }
  auto decode = preview.mode ? look(Role::Decode, decode_wish()) : look(alone_role_, alone_wish());
  if (!decode) return fail(std::move(decode.error()));
  preview.decode = std::move(*decode);
  return preview;
}

fleet::Wish Selection::decode_wish() const {
  fleet::Wish wish = wish_for(Role::Decode);
  wish.part = fleet::Part::Decode;
  wish.mode = mode_;
  wish.constraints.merge(transfer_);
  pass_over(wish, pool_->workers(Role::Decode), blame_.suspected_decodes(),
            prefill_ ? blame_.decodes_beside(*prefill_) : blame_.decodes());
  return wish;
}

Result<fleet::Booking> Selection::decode() {
  return book(Role::Decode, decode_wish(), decode_lease_);
}

fleet::Wish Selection::alone_wish() const {
  fleet::Wish wish = wish_for(alone_role_);
  wish.observed = streams();
  // Without the prefill worker that it could not work with, a decode worker may do.
  const bool falls_back = policy_.on_prefill_failure == model::OnPrefillFailure::Fallback;
  pass_over(wish, pool_->workers(alone_role_), blame_.suspected_decodes(),
            falls_back ? blame_.decodes() : blame_.suspected_decodes());
  return wish;
}

Result<fleet::Booking> Selection::alone(const std::optional<fleet::BusyLine>& busy) {
  if (!looked_) look_at_prompt();
  looked_ = false;
  return anywhere([&] {
    fleet::Wish wish = alone_wish();
    wish.busy = busy;
    return book(alone_role_, wish, decode_lease_);
  });
}

Result<fleet::Booking> Selection::releaser(fleet::Pool& pool, model::HandoffMode mode,
                                           const scheduling::Constraints& transfer,
                                           const fleet::Excluded& excluded) const {
  fleet::WorkerSet& decodes = pool.workers(Role::Decode);
  fleet::Wish wish;
  wish.whatever_policy = true;
  wish.part = fleet::Part::Decode;
  wish.mode = mode;
  wish.constraints = transfer;
  wish.adapter = job_.adapter;
  wish.excluded = excluded;
  auto booking = decodes.book(wish, random_);
  wish.excluded.clear();
  if (!booking) booking = decodes.book(wish, random_);
  // Not even one that is about to leave would mind.
  wish.worst = fleet::Standing::Out;
  if (!booking) booking = decodes.book(wish, random_);
  return booking;
}

void Selection::prefill_failed(const fleet::Worker& worker) {
  blame_.prefill_failed(worker.id());
  unbind(Role::Prefill);
}

void Selection::decode_failed(const fleet::Worker& worker) {
  blame_.decode_failed(worker.id());
  unbind(Role::Decode);
}

void Selection::handoff_failed(const fleet::Worker& decode, bool misled) {
  blame_.handoff_failed(*prefill_, decode.id(), misled);
  unbind(Role::Decode);
}

void Selection::unbind(Role role) {
  const std::string& session = job_.hints->session_id;
  if (!session.empty()) job_.model->affinity(role).unbind(session);
}

}  // namespace baton::handoff
