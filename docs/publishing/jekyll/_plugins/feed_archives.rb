# Makes a page feed/archive-N.xml of every full slice of posts; _layouts/feed.xml writes what stands in it.
# Where plugins are not run, each page is a file with the same lines between two of "---".
class FeedArchives < Jekyll::Generator
  def generate(site)
    full = site.posts.docs.size / site.config["feed_slice"]
    (1..full).each do |number|
      page = Jekyll::PageWithoutAFile.new(site, site.source, "feed", "archive-#{number}.xml")
      page.data = { "layout" => "feed", "number" => number }
      site.pages << page
    end
  end
end
