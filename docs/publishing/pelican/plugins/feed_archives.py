"""Writes feed.xml, the subscription document, and feed/archive-N.xml of every full slice of articles."""

from pelican import signals


def write(generator, writer):
    settings = generator.settings
    size, base = settings["FEED_SLICE"], settings["SITEURL"]
    articles = sorted(generator.articles, key=lambda article: (article.date, article.slug))
    full = len(articles) // size
    template = generator.env.get_template("feed.xml")

    def put(name, entries, **links):
        entries = list(reversed(entries))
        updated = max(getattr(article, "modified", article.date) for article in entries)
        context = {**generator.context, "entries": entries, "updated": updated, "own_url": f"{base}/{name}"}
        writer.write_file(name, template, context, url=name, **links)

    def archive(number):
        return f"{base}/feed/archive-{number}.xml"

    for number in range(1, full + 1):
        put(
            f"feed/archive-{number}.xml",
            articles[(number - 1) * size : number * size],
            current=f"{base}/feed.xml",
            prev_archive=archive(number - 1) if number > 1 else None,
            next_archive=archive(number + 1) if number < full else None,
        )
    # The newest full archive is not linked yet: it still gains its link to the next one.
    if articles:
        put("feed.xml", articles[-2 * size :], prev_archive=archive(full - 1) if full > 1 else None)


def register():
    signals.article_writer_finalized.connect(write)
