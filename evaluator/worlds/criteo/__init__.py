"""A twin of a log: a file in the same format, drawn from fitted facts, whose truth is known.

Construction, in the order of the modules:

`campaigns`, `contexts`
    A display meets a context (cat1 and a class of cat4), then a campaign drawn with a known probability given the
    context, and converts with a probability that depends on both. Sizes and rates of the campaigns are kept exactly
    as margins: the joint distribution of campaign and context is fitted to them by iterative proportional scaling,
    the rates given the context average to the campaign's rate.
`journeys`
    Which rows convert, when, and together with which others. Drawing a conversion first and its displays after it would
    bend the delays: a conversion near either end of the log leaves room for some delays only. Instead every converted
    row draws its display time from the arrivals and, independently, its delay from the fitted law, the latter by
    stratified inversion, so that quantiles are met whatever the seed. Rows are then sorted by their sum, the conversion
    time, and neighbours become one journey: it converts at one time and every row keeps its own delay, its display
    moving by the small gap between neighbours (6 s on average at full size). Given their conversion time the rows of a
    journey are independent, so display times stay distributed as arrivals and delays as the law, edges included.
`users`
    How many rows a user has; users with enough of them get the journeys, the other rows are dealt out at random.
`chunks`
    The rows of a stretch of time: converted rows from the plan, all others drawn. Conditioned on the outcome, cells
    (campaign, context) have probability p * q / Q among converted rows and p * (1 - q) / (1 - Q) among the others, with
    p their share, q their conversion probability, Q its mean. Each stretch has its own random stream.
`make`
    Streams the chunks, the text of which several threads write, into one gzip file, and states the truth beside it.

What scales with the size of the file is density: the time span stays, the numbers of users and conversions are
proportional to the rows. These totals are fixed, not random.
"""
