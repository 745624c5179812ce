"""Documents as the decisions of a refresh see them."""

from __future__ import annotations

from wholefeed.core.refresh.arrivals import FreshDocument, Offer
from wholefeed.core.walk.chain import Arrival
from wholefeed.service.sources import Obtained


def offer_document(url: str, obtained: Obtained, *, is_subscription: bool) -> Offer[Obtained]:
    """Return a document as its source offers it."""
    return Offer(
        origin=obtained.origin,
        url=url,
        copy_url=url if obtained.origin.policy.url_prefix else obtained.memento,
        captured_at=obtained.fetched.fetched_at,
        is_subscription=is_subscription,
        document=obtained,
    )


def describe_offer(offer: Offer[Obtained], obtained: Obtained) -> Offer[FreshDocument]:
    return Offer(
        origin=offer.origin,
        url=offer.url,
        copy_url=offer.copy_url,
        captured_at=offer.captured_at,
        is_subscription=offer.is_subscription,
        document=describe_fresh(offer.url, obtained),
    )


def describe_fresh(url: str, obtained: Obtained, *, is_collected: bool = False) -> FreshDocument:
    """Describe a document requested by a URL; `is_collected`: by an adapter."""
    fetched, read, facts = obtained.fetched, obtained.read, obtained.read.facts
    navigation = read.navigation
    arrival = Arrival(
        url=url,
        final_url=fetched.final_url,
        hops=fetched.hops,
        family=facts.family,
        site_id=facts.site_id,
        links=navigation.links,
        digest=read.digest,
        body_bytes=len(fetched.body),
        entries=len(facts.entries),
        keys=facts.entries.dated_identities,
        span=read.span,
    )
    return FreshDocument(
        arrival=arrival,
        kind=navigation.kind,
        older_relation=navigation.older_relation,
        is_tentative=navigation.is_tentative,
        updated_at=facts.updated_at,
        marks=read.marks,
        order=tuple(entry.order_at for entry in facts.entries) if is_collected else (),
        validators=fetched.validators,
        fullness=facts.entries.fullness,
        reading_notes=facts.notes,
        link_notes=navigation.notes,
    )
